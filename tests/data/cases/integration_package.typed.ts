
import { Client, newSecret } from "ldp-budget";
import { DeviceBudget, OverBudget, type Limits } from "ldp-budget/budget";
import { confirmLoss, Unconfirmed } from "ldp-budget/loss";
import { Outbox, type Entry } from "ldp-budget/outbox";
import { Questionnaire, newSeed } from "ldp-budget/questionnaire";

export async function surveyed(definition: unknown, budget: DeviceBudget): Promise<Uint8Array | undefined> {
    const survey = new Questionnaire(definition);
    const asked: number[] = survey.asked(newSeed());
    const report: Uint8Array = survey.randomize({ mood: "good", sleep: 7.5 });
    console.log(asked, survey.parts(report).map(({ place, part }) => [place, part.length]));
    return (await new Outbox(budget).draw("2026-11-24", survey, { mood: "good", sleep: 7.5 })).report;
}

export async function answered(definition: unknown, answer: string): Promise<Entry | undefined> {
    try {
        confirmLoss(definition);
    } catch (error) {
        if (error instanceof Unconfirmed) return undefined;
        throw error;
    }
    const client = new Client(definition, { digest: "186d8676cd6e" });
    const secret: Uint8Array = newSecret();
    const report: Uint8Array = client.randomize(answer, client.memoises ? { secret } : {});
    const shares: number[] | undefined = client.explain(report)?.map((each) => each.share);
    const label: string | undefined = client.label(answer, secret);
    const limits: Limits = { lifetime: "4", day: "1" };
    const budget = await DeviceBudget.open(limits);
    try {
        const { key, report: kept } = await new Outbox(budget).draw("2026-11-23", client, answer);
        console.log(key, kept?.length, label, shares, (await budget.balance()).lifetime?.left);
    } catch (error) {
        if (error instanceof OverBudget) console.log(error.limits.map(({ period, limit }) => `${period} ${limit}`));
    }
    return new Outbox(budget).settle("2026-11-23", { state: "arrived" });
}
