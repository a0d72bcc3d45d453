-- +goose NO TRANSACTION
-- +goose Up
-- For "audit list --object".
drop index concurrently if exists audit_log_object;
create index concurrently audit_log_object on audit_log (tenant_id, object, seq);

-- +goose Down
drop index concurrently if exists audit_log_object;
