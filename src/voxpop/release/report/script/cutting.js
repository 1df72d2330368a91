// Tokenize what is typed as release/cutting.py does. The patterns in capitals are filled in from voxpop/reading/segmenting.py.
const URLS = new RegExp("{URL}", "gu");
const WORDS = new RegExp("{WORD}", "gu");
const APOSTROPHES = new RegExp("{ANY_APOSTROPHE}", "gu");
const normalForm = (text) => text.normalize("NFC").toLowerCase().normalize("NFC");
const oneApostrophe = (text) => text.replace(APOSTROPHES, "'");
const folded = (text) => oneApostrophe(normalForm(text));

function cutPrompt(text, reading, numbers) {
  if (reading === "items") return { tokens: text ? [text] : [], open: text !== "" };
  const tokens = cutText(text, reading, numbers);
  const last = tokens[tokens.length - 1];
  const open = tokens.length > 0 && reading !== "characters" && !/\s$/u.test(text) && folded(text).endsWith(folded(last));
  return { tokens, open };
}

function cutText(text, reading, numbers) {
  if (reading === "words") return folded(text).replace(URLS, " ").match(WORDS) || [];
  if (reading === "unicode") return segmented(folded(text).replace(URLS, " "));
  if (reading === "characters") return Array.from(normalForm(text)).filter((letter) => !/\s/u.test(letter));
  const pattern = reading.startsWith("regex:") ? patternOf(reading.slice(6)) : null;
  if (pattern) return (text.match(pattern) || []).filter((token) => token);
  const parts = text.split(/\s+/u).filter((part) => part);
  if (reading === "whitespace") return parts;
  return parts.map((part) => (!numbers.has(part) && numbers.has(normalForm(part)) ? normalForm(part) : part));
}

// The same rules and dictionaries (ICU), which every browser has.
function segmented(text) {
  const parts = new Intl.Segmenter("en", { granularity: "word" }).segment(text);
  return Array.from(parts, (part) => part.segment).filter((part) => /[\p{L}\p{N}\p{So}]/u.test(part));
}

function patternOf(source) {
  try {
    return new RegExp(source, "gu");
  } catch {
    return null; // written for Python in a way that browsers do not read: white space parts tokens instead
  }
}
