// Ranks of search results: pages for readers with a task before the reference, and that before evidence and the changelog.
"use strict";

const RANKS = [
  [/^(index|changelog|contributing)$/, -14],
  [/^evidence\/(?!sources)/, -10],
  [/^korean-terms$/, -6],
  [/^tutorials\/examples\//, -6],
  [/^reference\//, -3],
  [/^start\//, 6],
  [/^(guides|help)\//, 5],
  [/^explanation\/glossary$/, 0],
  [/^(tutorials|case-studies|explanation)\//, 2],
];

var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    const found = RANKS.find(([pattern]) => pattern.test(docname));
    return score + (kind === "object" || !found ? 0 : found[1]);
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
