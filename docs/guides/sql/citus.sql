-- Spread the tables of a ledger over the workers of a Citus cluster, by lane. NOT TESTED; docs/guides/scaling.md says
-- what holds by design, and which statement Citus is known to refuse.
--
-- Run it once, on the coordinator, right after `ldp-budget ledger init` and before anything is charged. Every key and
-- every unique index begins with the lane, so each lane lies whole on one worker. Take as many shards as lanes.

BEGIN;

SELECT create_reference_table('meta');

SELECT create_distributed_table('lanes', 'lane', shard_count => 64);

SELECT create_distributed_table('users', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('tombstones', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('accounts', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('seals', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('labels', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('quotas', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('periods', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('charges', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('policies', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('journal', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('entry_labels', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('notes', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('keys', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('collections', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('checkpoints', 'lane', colocate_with => 'lanes');
SELECT create_distributed_table('records', 'lane', colocate_with => 'lanes');

COMMIT;
