-- migrationlint:allow unreadable: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Since when an accept or a conversion is under way, over all of its attempts.
alter table quotes add column accept_since timestamptz;
alter table leads add column converting_since timestamptz;
-- +goose StatementBegin
do $$ begin
    execute format('grant select (accept_since) on quotes to %I', worker_role());
    execute format('grant select (converting_since) on leads to %I', worker_role());
end $$;
-- +goose StatementEnd

-- +goose Down
alter table leads drop column converting_since;
alter table quotes drop column accept_since;
