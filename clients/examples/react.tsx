// The same page with React.

import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { CONFIG } from "./config.js";
import { invitationOf, Question, type State } from "./reports.js";

const SAID: Record<State | "sending", string> = {
  new: "",
  sending: "Sending",
  waiting: "Your answer is kept on this device, and sent when you open this page again.",
  arrived: "Your answer has arrived.",
  refused: "Your budget is used up. Nothing was counted.",
};

/** A question, its state, and a function that answers it. Opening it again finds what was drawn before. */
function useQuestion(invitation: string) {
  const [question, setQuestion] = useState<Question>();
  const [state, setState] = useState<State | "sending">();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    let current = true;
    Question.open(CONFIG, invitation)
      .then(async (opened) => {
        const found = await opened.send();
        if (!current) return;
        setQuestion(opened);
        setState(found);
      })
      .catch(setError);
    return () => void (current = false);
  }, [invitation]);
  const answer = (text: string) => {
    setState("sending");
    question?.answer(text).then(setState, setError);
  };
  return { question, state, error, answer };
}

function Page({ invitation }: { invitation: string }) {
  const { question, state, error, answer } = useQuestion(invitation);
  return (
    <>
      <h1>{question?.texts.question ?? "A question"}</h1>
      <p>{question?.texts.guarantee.words}</p>
      <div>{state === "new" && question?.texts.answers.map((text) => <button key={text} onClick={() => answer(text)}>{text}</button>)}</div>
      <p role="status">{error?.message ?? (state ? SAID[state] : "Loading")}</p>
    </>
  );
}

createRoot(document.getElementById("root")!).render(<Page invitation={invitationOf(location.hash)} />);
