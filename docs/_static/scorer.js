// Search finds what teaches before what lists: quickstart, gallery and guides, then everything else, then the reference.
var Scorer = {
  score: ([page, , , , score]) => {
    if (/^(quickstart|gallery\/|guides\/|faq|sharp-edges|glossary)/.test(page)) return score + 30;
    return /^(reference\/|design\/|trust|licences)/.test(page) ? score - 10 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
