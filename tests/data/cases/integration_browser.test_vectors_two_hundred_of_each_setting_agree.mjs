async (text) => {
                const { Program } = await import("/js/src/program.js");
                const { Draws } = await import("/js/src/draws.js");
                const { fromHex, toHex } = await import("/js/src/bytes.js");
                const { definition, vectors } = JSON.parse(text);
                const program = new Program(definition);
                return vectors.filter(({ answer, secret, stream, report }) => {
                    const bytes = fromHex(stream);
                    let at = 0;
                    const draws = new Draws((count) => bytes.subarray(at, (at += count)));
                    const numbered = typeof answer === "string" && definition.input.kind !== "word";
                    const given = numbered ? BigInt(answer) : answer;
                    const made = program.run(given, { secret: secret && fromHex(secret), draws });
                    return toHex(made) === report && at === bytes.length;
                }).length;
            }