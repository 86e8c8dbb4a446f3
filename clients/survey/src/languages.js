// The texts of the respondents' pages in the language of the document, of which the server names file and digest. Imported
// first: other modules use them.

import { speak } from "./texts.js";

const { texts = "", integrity } = /** @type {HTMLElement} */ (document.querySelector("main")).dataset;
const tag = document.documentElement.lang;
const answer = await fetch(texts, { integrity });
speak({ [tag]: await answer.json() }, tag);
