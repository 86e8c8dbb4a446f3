() => new Promise((done) => {
            const request = indexedDB.open("ldp-budget");
            request.onsuccess = () => {
                const stores = request.result.transaction(["outbox", "budget"]);
                const kept = stores.objectStore("outbox").getAll();
                const budget = stores.objectStore("budget").get("device");
                budget.onsuccess = () => {
                    request.result.close();
                    const spent = budget.result.spent.lifetime / 1e9;
                    const shown = (each) => ({ ...each, report: each.report && [...each.report] });
                    done({ spent, kept: kept.result.map(shown) });
                };
            };
        })