-- +goose ENVSUB ON
-- +goose Up
-- The worker appends what the other services have written: a batch of their events is of many tenants.
drop policy worker on audit_heads;
create policy worker on audit_heads to "${WORKER_ROLE}" using (true);
grant update (seq, hash) on audit_heads to "${WORKER_ROLE}";
grant insert on audit_log, inbox to "${WORKER_ROLE}";

-- +goose Down
revoke insert on audit_log, inbox from "${WORKER_ROLE}";
revoke update (seq, hash) on audit_heads from "${WORKER_ROLE}";
drop policy worker on audit_heads;
create policy worker on audit_heads for select to "${WORKER_ROLE}" using (true);
