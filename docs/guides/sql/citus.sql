-- Spread the tables of a ledger over the workers of a Citus cluster, by partition. NOT TESTED; docs/guides/scaling.md says
-- what holds by design, and which statement Citus is known to refuse.
--
-- Run it once, on the coordinator, right after `ldp-budget ledger init` and before anything is charged. Every key and
-- every unique index begins with the partition, so each partition lies whole on one worker. Take as many shards as partitions.

BEGIN;

SELECT create_reference_table('meta');

SELECT create_distributed_table('partitions', 'partition', shard_count => 64);

SELECT create_distributed_table('users', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('tombstones', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('window_sums', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('account_macs', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('memoised_counts', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('quotas', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('periods', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('priced_mechanisms', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('policies', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('journal', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('entry_labels', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('notes', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('idempotency_records', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('batch_runs', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('key_epochs', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('closings', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('moved_entries', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('erased_records', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('reports', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('rounds', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('collections', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('checkpoints', 'partition', colocate_with => 'partitions');
SELECT create_distributed_table('admin_log', 'partition', colocate_with => 'partitions');

COMMIT;
