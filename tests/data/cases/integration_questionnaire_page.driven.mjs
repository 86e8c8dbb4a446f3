async ({ people }) => {
    const { Questionnaire } = await import("/js/questionnaire.js");
    const { DeviceBudget } = await import("/js/budget.js");
    const { Outbox } = await import("/js/outbox.js");
    const { fromHex } = await import("/js/bytes.js");
    const survey = new Questionnaire(await (await fetch("/v1/collections/two")).json());
    const { definition } = survey;
    const receipts = [];
    for (const { token, answers } of people) {
        const me = await (await fetch("/v1/me", { headers: { Authorization: `Bearer ${token}` } })).json();
        const asked = survey.asked(fromHex(me.seed)).map((place) => definition.questions[place].name);
        const own = Object.fromEntries(asked.map((name) => [name, answers[name]]));
        const budget = await DeviceBudget.open({ lifetime: "2" }, { name: `device ${me.key}` });
        const outbox = new Outbox(budget);
        // Drawing again under the same key returns the same report, and sending it again the same response.
        const drawn = [await outbox.draw(me.key, survey, own), await outbox.draw(me.key, survey, own)];
        const headers = { Authorization: `Bearer ${token}`, "Idempotency-Key": me.key, "X-Collection": definition.digest };
        const found = [];
        for (const { report } of drawn) {
            const response = await fetch("/v1/collections/two/reports", { method: "POST", headers, body: report });
            found.push((await response.json()).receipt);
        }
        const { lifetime } = await budget.balance();
        receipts.push({ found, left: lifetime.left });
        budget.close();
    }
    return receipts;
}