
    const { DeviceBudget, costOf } = await import(BUDGET);
    // One record, as IndexedDB keeps it: a copy comes in, a copy goes out, and what is aborted was never put.
    const stored = { record: undefined };
    const database = () => ({
        close() { this.closed = true; },
        transaction() {
            if (this.closed) throw new DOMException("the database is closed", "InvalidStateError");
            let put;
            const transaction = { abort() { this.aborted = true; }, error: null };
            const read = {};
            const keep = (value) => { put = structuredClone(value); };
            transaction.objectStore = () => ({ get: () => read, put: keep });
            queueMicrotask(() => {
                read.result = structuredClone(stored.record);
                read.onsuccess();
                if (stored.fails) {
                    transaction.error = new DOMException("the disk is full", "QuotaExceededError");
                    transaction.aborted = true;
                }
                if (transaction.aborted) return transaction.onabort();
                if (put) stored.record = put;
                transaction.oncomplete();
            });
            return transaction;
        },
    });
    const indexedDB = { open: () => {
        const request = { result: database() };
        queueMicrotask(() => request.onsuccess());
        return request;
    } };
    const monday = () => new Date("2026-11-23T10:00:00Z");
    const open = (limits, now = monday) => DeviceBudget.open(limits, { indexedDB, now });
    const asks = async (budget, collection, answer) => {
        try { return (await budget.randomize(collection, answer)).length; }
        catch (error) { return `${error.name}: ${error.message}`; }
    };
    const spent = async (budget) => (await budget.balance()).lifetime.spent;
