-- +goose ENVSUB ON
-- +goose Up
-- A feed ends with the credential that holds it: the one that made it, or the key that a rotation has put in its place. Feeds that an
-- earlier version made have neither, and are deleted by hand.
alter table calendar_feeds add column created_by text, add column holder text;
select open_to_worker('calendar_feeds', 'select (tenant_id, livemode, id, holder)');

-- +goose Down
drop policy worker on calendar_feeds;
revoke select (tenant_id, livemode, id, holder) on calendar_feeds from "${WORKER_ROLE}";
alter table calendar_feeds drop column holder, drop column created_by;
