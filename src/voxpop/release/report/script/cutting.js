// Tokenize what is typed as reading/one_text.py does. The patterns in capitals are filled in from voxpop/reading/segmenting.py.
const pattern = (source) => new RegExp(source, "gu");
const IGNORED = pattern("{ANY_IGNORED}");
const USELESS_JOINERS = pattern("{USELESS_JOINER}");
const WITHOUT_WIDTH = pattern("{ANY_WITHOUT_WIDTH}");
const DOTTED_I = pattern("{DOTTED_I}");
const URLS = pattern("{URL}");
const APOSTROPHES = pattern("{ANY_APOSTROPHE}");
const UNSPACED = new RegExp("{ANY_UNSPACED}", "u");
const WORDS = pattern("{WORD}");
const visible = (text) => text.replace(IGNORED, "").replace(USELESS_JOINERS, "");
const normalForm = (text) => visible(text).normalize("NFC").toLowerCase().replace(DOTTED_I, "i").normalize("NFC");
const oneApostrophe = (text) => text.replace(APOSTROPHES, "'");
const folded = (text) => oneApostrophe(normalForm(text));

function cutPrompt(text, reading, numbers) {
  if (reading === "items") return { tokens: text ? [text] : [], open: text !== "" };
  const tokens = cutText(text, reading, numbers);
  const last = tokens[tokens.length - 1];
  const open = tokens.length > 0 && reading !== "characters" && !/\p{White_Space}$/u.test(text) && folded(text).endsWith(folded(last));
  return { tokens, open };
}

function cutText(text, reading, numbers) {
  if (reading === "words") return spaced(oneApostrophe(normalForm(text).replace(URLS, " "))).match(WORDS) || [];
  if (reading === "characters") {
    return Array.from(normalForm(text).replace(WITHOUT_WIDTH, "")).filter((letter) => !/\p{White_Space}/u.test(letter));
  }
  const given = reading.startsWith("regex:") ? patternOf(reading.slice(6)) : null;
  if (given) return (text.match(given) || []).filter((token) => token);
  const parts = text.split(/\p{White_Space}+/u).filter((part) => part);
  if (reading === "whitespace") return parts;
  return parts.map((part) => (!numbers.has(part) && numbers.has(normalForm(part)) ? normalForm(part) : part));
}

// Scripts without spaces: spaces where ICU, which browsers contain, has borders. Its version is that of the browser.
function spaced(text) {
  if (!UNSPACED.test(text)) return text;
  let result = "", before = "";
  for (const { segment } of new Intl.Segmenter("en", { granularity: "word" }).segment(text)) {
    const [first] = segment;
    result += (UNSPACED.test(before) || UNSPACED.test(first) ? " " : "") + segment;
    before = Array.from(segment).pop();
  }
  return result;
}

function patternOf(source) {
  try {
    return new RegExp(source, "gu");
  } catch {
    return null; // written for Python in a way that browsers do not read: white space parts tokens instead
  }
}
