-- +goose Up
-- What is known here of the invoices of bookings; kept by the events of the customers service. An invoice without a
-- booking has a row too, so that an old event cannot give it back the booking that it had as a draft.
create table booking_invoices (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    invoice_id            text collate "C" not null, -- sorts by the time of its making
    booking_id            uuid,
    version               bigint      not null,
    primary key (tenant_id, livemode, invoice_id),
    foreign key (tenant_id, livemode, booking_id) references bookings
);
create index booking_invoices_booking on booking_invoices (tenant_id, livemode, booking_id, invoice_id) where booking_id is not null;

-- The payments of these invoices. A booking's paid is the sum of those that are not reversed.
create table booking_payments (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    payment_id            text collate "C" not null,
    booking_id            uuid        not null,
    invoice_id            text        not null,
    amount                bigint      not null check (amount >= 0),
    currency              text        not null,
    reversed_at           timestamptz,                -- once set, it stays
    primary key (tenant_id, livemode, payment_id),
    foreign key (tenant_id, livemode, booking_id) references bookings
);
create index booking_payments_booking on booking_payments (tenant_id, livemode, booking_id);

select protect(t) from unnest(array['booking_invoices', 'booking_payments']::regclass[]) t;

-- +goose Down
drop table booking_payments, booking_invoices;
