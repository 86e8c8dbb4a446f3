
import { readFileSync } from "node:fs";
const { check } = await import(process.argv[2]);
const wrong = [];
for (const each of JSON.parse(readFileSync(process.argv[3], "utf8")).surveys) {
  const files = new Map(Object.entries(each.files).map(([name, text]) => [name, new Uint8Array(Buffer.from(text, "base64"))]));
  const bytes = (text) => (text ? new TextEncoder().encode(text) : null);
  let accepted = true;
  const receipts = each.receipt_texts?.map(bytes) ?? each.receipts;
  try { await check(files, each.keys, receipts, bytes(each.proof), bytes(each.seen)); } catch { accepted = false; }
  if (accepted !== each.accepted) wrong.push(each.name);
}
console.log(JSON.stringify(wrong));
