-- +goose Up
-- Who asked for an accept or a conversion: a completer that ends it names this credential in the events. The event behind an
-- accept or a conversion that an earlier release has begun names the service.
alter table quotes add column accept_actor text not null default '';
alter table leads add column converting_actor text not null default '';

-- +goose Down
alter table leads drop column converting_actor;
alter table quotes drop column accept_actor;
