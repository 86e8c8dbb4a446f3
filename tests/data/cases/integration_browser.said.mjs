
        const { newSecret } = await import("/js/src/index.js");
        const state = {
            secret: newSecret(), since: "2026-11-01T00:00:00.000Z", limits: { lifetime: 3e9, day: null },
            spent: { lifetime: 1e9, day: 0, date: "2026-11-01" }, labels: [],
        };
        await new Promise((done) => {
            const request = indexedDB.open("ldp-budget", 1);
            request.onupgradeneeded = () => request.result.createObjectStore("budget").put(state, "device");
            request.onsuccess = () => { request.result.close(); done(); };
        });
        const outbox = await opened();
        await outbox.draw("monday", client, 1);
        return [outbox.budget.fresh, await left(outbox)];
        