// The page without a framework.

import { CONFIG } from "./config.js";
import { invitationOf, Question } from "./reports.js";

const SAID = { new: "", waiting: "Your answer is kept on this device, and sent when you open this page again.", arrived: "Your answer has arrived.", refused: "Your budget is used up. Nothing was counted." };
const show = (/** @type {string} */ id, /** @type {string} */ text) => {
  /** @type {HTMLElement} */ (document.getElementById(id)).textContent = text;
};

/** Do something with the question, and show its state or why it failed. @param {() => Promise<keyof typeof SAID>} act */
async function shown(act) {
  try {
    const state = await act();
    show("said", SAID[state]);
    return state;
  } catch (error) {
    show("said", /** @type {Error} */ (error).message);
  }
}

await shown(async () => {
  const question = await Question.open(CONFIG, invitationOf(location.hash));
  show("question", question.texts.question);
  show("words", question.texts.guarantee.words);
  const state = await question.send();
  if (state !== "new") return state;
  for (const answer of question.texts.answers) {
    const button = document.createElement("button");
    button.textContent = answer;
    button.addEventListener("click", () => {
      document.querySelectorAll("button").forEach((each) => each.remove()); // one answer: a second one is not used
      show("said", "Sending");
      shown(() => question.answer(answer));
    });
    document.getElementById("answers")?.append(button);
  }
  return state;
});
