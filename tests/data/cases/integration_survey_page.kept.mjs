async () => {
            const found = [JSON.stringify(localStorage), document.cookie];
            for (const { name } of await indexedDB.databases()) {
                const opened = await new Promise((done) => {
                    const request = indexedDB.open(name);
                    request.onsuccess = () => done(request.result);
                });
                for (const store of opened.objectStoreNames) {
                    const all = await new Promise((done) => {
                        const request = opened.transaction(store).objectStore(store).getAll();
                        request.onsuccess = () => done(request.result);
                    });
                    found.push(JSON.stringify(all));
                }
                opened.close();
            }
            return found.join();
        }