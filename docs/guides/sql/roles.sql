-- Two roles for the database of a ledger: one that makes it, and one that may do what the library does, and no more.
--
-- Run it twice, in that database, as a superuser:
--
--     psql -d ledger -f roles.sql          the roles
--     ldp-budget --ledger postgresql://ldp_budget_owner@HOST/ledger ledger init
--     psql -d ledger -f roles.sql          the rights to the tables, which are there by now
--
-- It may be run again at any time; what it grants is all that the application has. The roles have no passwords yet
-- (\password ldp_budget_owner). They belong to the whole server: for a second ledger there, take other names.

DO $$
DECLARE
    tables CONSTANT text[] := ARRAY['meta', 'partitions', 'users', 'tombstones', 'window_sums', 'account_macs',
        'memoised_counts', 'quotas', 'periods', 'priced_mechanisms', 'policies', 'journal', 'entry_labels', 'notes',
        'idempotency_records', 'batch_runs', 'key_epochs', 'closings', 'moved_entries', 'erased_records',
        'reports', 'rounds', 'collections', 'checkpoints', 'admin_log'];
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['ldp_budget_owner', 'ldp_budget_app'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION', name);
        END IF;
    END LOOP;

    -- No other role is let in, and no one may put a table of the same name before one of these.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO ldp_budget_owner, ldp_budget_app', current_database());
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT USAGE, CREATE ON SCHEMA public TO ldp_budget_owner;
    GRANT USAGE ON SCHEMA public TO ldp_budget_app;

    IF to_regclass('public.partitions') IS NULL THEN
        RAISE NOTICE 'there is no ledger yet; make it as ldp_budget_owner, then run this again';
        RETURN;
    END IF;

    FOREACH name IN ARRAY tables LOOP
        EXECUTE format('REVOKE ALL ON public.%I FROM PUBLIC, ldp_budget_app', name);
        EXECUTE format('GRANT SELECT ON public.%I TO ldp_budget_app', name);
    END LOOP;

    -- What is only ever added.
    GRANT INSERT ON public.users, public.tombstones, public.window_sums, public.account_macs, public.memoised_counts,
        public.quotas, public.periods, public.priced_mechanisms, public.policies, public.journal, public.entry_labels,
        public.notes, public.idempotency_records, public.batch_runs, public.key_epochs, public.closings,
        public.moved_entries, public.erased_records, public.reports, public.rounds,
        public.collections, public.checkpoints, public.admin_log TO ldp_budget_app;

    -- The end of a partition, and what is summed up. A bulk run appends its entries first and then sets the hash of the
    -- last one: so of the journal the chain hashes may be written, and nothing else. Sealing empties reports.
    GRANT UPDATE ON public.partitions TO ldp_budget_app;
    GRANT UPDATE (epsilon, delta, rho, mu_squared) ON public.window_sums TO ldp_budget_app;
    GRANT UPDATE (day, row_mac) ON public.account_macs TO ldp_budget_app;
    GRANT UPDATE (reports) ON public.memoised_counts TO ldp_budget_app;
    GRANT UPDATE (used) ON public.quotas TO ldp_budget_app;
    GRANT UPDATE (since) ON public.periods TO ldp_budget_app;
    GRANT UPDATE (chain_hash) ON public.journal TO ldp_budget_app;
    GRANT UPDATE (state, report, row_mac) ON public.reports TO ldp_budget_app;

    -- Erasure cuts a user off and deletes what could identify them; it deletes no entry and no user.
    GRANT UPDATE (user_hash, row_mac) ON public.users TO ldp_budget_app;
    GRANT DELETE ON public.window_sums, public.account_macs, public.memoised_counts, public.entry_labels, public.notes,
        public.idempotency_records TO ldp_budget_app;

    -- Nothing is written here. A process that opens the ledger tests whether a row can be locked, and PostgreSQL asks for the
    -- right to change some column of it.
    GRANT UPDATE (name) ON public.meta TO ldp_budget_app;
END
$$;
