-- +goose ENVSUB ON
-- +goose Up
-- The worker writes what events tell of bookings: a batch of them is of many tenants.
select open_to_worker('bookings', 'select, insert, update');
grant insert on inbox to "${WORKER_ROLE}";

-- +goose Down
revoke insert on inbox from "${WORKER_ROLE}";
revoke select, insert, update on bookings from "${WORKER_ROLE}";
drop policy worker on bookings;
