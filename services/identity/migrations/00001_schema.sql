-- +goose ENVSUB OFF
-- +goose Up
-- The words of a text by which a tenant is found: without case and accents, at most 100 characters of each. A generated column and the
-- search use this function, so that both split a text in the same way.
-- +goose StatementBegin
create function search_words(content text) returns text[]
language sql immutable strict parallel safe return array(
    select left(w, 100) from regexp_split_to_table(
        replace(lower(regexp_replace(normalize(content, NFKD), '[\u0300-\u036f]', '', 'g')), 'ß', 'ss'),
        '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+') w
    where w <> '');
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function search_words(text) from public;
grant execute on function search_words(text) to "${APP_ROLE}", "${WORKER_ROLE}";

-- Exempt from (tenant_id, livemode): a tenant spans both modes. tenant_id is its own id.
create table tenants (
    tenant_id            uuid        primary key,
    slug                 text        not null constraint tenants_slug_key unique,
    name                 text        not null,
    timezone             text        not null,
    currency             char(3)     not null,
    country              char(2),
    auto_confirm         boolean     not null default false,
    hold_ttl_minutes     integer,
    min_notice_minutes   integer,
    max_advance_days     integer,
    confirm_on_deposit   boolean     not null default true,
    version              bigint      not null default 1,
    created_at           timestamptz not null,
    updated_at           timestamptz not null,
    clock                timestamptz, -- the frozen time of test mode; null: real time
    -- What invoices and quotes show of the tenant; empty: nothing.
    invoice_prefix       text        not null default 'INV-',
    invoice_year         boolean     not null default false, -- whether the year follows the prefix
    legal_name           text        not null default '',
    address              text        not null default '',
    tax_id               text        not null default '',
    -- What the booking policy refunds to cards.
    refund_rules         json,       -- domain.RefundRule, the most hours first; null: not set
    auto_refund          boolean     not null default false,
    refund_late_payments boolean     not null default false,
    -- What applies to quotes and invoices that specify no taxes.
    tax_behavior         text        not null default 'exclusive' check (tax_behavior in ('exclusive', 'inclusive')),
    default_taxes        json        not null default '[]', -- money.Tax
    -- The limits that the platform has set. A limit that is null, or not in caps, has its default.
    requests_per_minute  integer,    -- of all credentials of a mode
    credential_requests_per_minute integer, -- of each credential
    caps                 jsonb       not null default '{}', -- maximum by name in proto.Caps
    status               text        not null default 'active'
                                     constraint tenants_status_check check (status in ('active', 'suspended', 'closing', 'erasing')),
    status_reason        text        not null default '', -- of the last change
    status_changed_at    timestamptz, -- null: the status never changed
    erase_at             timestamptz, -- when the data of a closing tenant is to be erased
    erasure_waits_for    text        not null default '', -- what a service has to complete before
    status_changed_by    text        not null default '', -- who made the last change, and from where
    external_id          text        constraint tenants_external_id_key unique, -- of the tenant in the platform's own system
    metadata             json,       -- of the platform; null: empty
    search               tsvector    generated always as (array_to_tsvector(search_words(slug || ' ' || name || ' ' || coalesce(external_id, '')))) stored,
    -- The language of documents, and the bank account that they show; empty: nothing.
    locale               text,       -- BCP 47; null: that of the country
    bank_account_holder  text        not null default '',
    bank_account_number  text        not null default '', -- an IBAN has no spaces
    bank_code            text        not null default '',
    bank_name            text        not null default '',
    -- The image that documents show. A change of another column does not copy it, because it is stored out of line.
    logo                 bytea,      -- PNG or JPEG
    logo_hash            text        not null default '', -- SHA-256 of the logo in hexadecimal; empty: there is none
    constraint tenants_logo check ((logo is null) = (logo_hash = ''))
);
create index tenants_erase_at on tenants (erase_at) where erase_at is not null;
create index tenants_search on tenants using gin (search);
create index tenants_updated_at on tenants (updated_at, tenant_id);
alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant on tenants to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
create policy worker on tenants for select to "${WORKER_ROLE}" using (true); -- the command line lists and finds them
grant select, insert, update on tenants to "${APP_ROLE}";
grant select on tenants to "${WORKER_ROLE}";
grant execute on function oldest_write() to "${WORKER_ROLE}"; -- lists all tenants in the order of their changes

-- What remains of an erased tenant: who closed it, and which services have confirmed its erasure.
alter table tenant_erasures
    add column closed_by    text        not null default '',
    add column services     jsonb       not null default '{}', -- number of deleted rows, by the name of a service that has finished
    add column leased_until timestamptz not null default '-infinity'; -- until then, a process continues the erasure
create index tenant_erasures_unfinished on tenant_erasures (leased_until) where erased_at is null;
grant insert on tenant_erasures to "${APP_ROLE}"; -- in the transaction that makes the erasure irrevocable

create table api_keys (
    tenant_id    uuid        not null references tenants (tenant_id),
    livemode     boolean     not null,
    id           uuid        not null constraint api_keys_id_key unique,
    name         text        not null,
    hash         bytea       not null constraint api_keys_hash_key unique, -- SHA-256; the key itself is not stored
    scopes       text[]      not null,
    version      bigint      not null default 1,
    created_at   timestamptz not null,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    expires_at   timestamptz, -- null: it does not end by itself
    successor    uuid, -- the key that replaced it in a rotation; null: it was not rotated
    primary key (tenant_id, livemode, id)
);
select protect('api_keys');
revoke delete on api_keys from "${APP_ROLE}";
create policy worker on api_keys to "${WORKER_ROLE}" using (true);
grant select (id, last_used_at), update (last_used_at) on api_keys to "${WORKER_ROLE}";

-- Changes of keys that Redis does not have yet. A row leaves the table when Redis has it.
create table key_signals (
    tenant_id uuid    not null references tenants (tenant_id),
    livemode  boolean not null,
    key_id    uuid    not null,
    value     text    not null, -- 'revoked', or the newest version of the principal
    primary key (tenant_id, livemode, key_id)
);
select protect('key_signals');
revoke delete on key_signals from "${APP_ROLE}";
select open_to_worker('key_signals', 'select, delete');

-- Credentials of the platform API. They belong to no tenant. Everything they change is in the audit log of the tenant.
create table platform_keys (
    id           uuid        primary key,
    name         text        not null,
    hash         bytea       not null constraint platform_keys_hash_key unique, -- SHA-256; the key itself is not stored
    scopes       text[]      not null,
    created_at   timestamptz not null,
    created_by   text        not null, -- who created it, and from where
    last_used_at timestamptz, -- exact to a minute
    revoked_at   timestamptz,
    revoked_by   text
);
grant select, insert, update (last_used_at, revoked_at, revoked_by) on platform_keys to "${APP_ROLE}";

-- The worker appends what the other services have written: a batch of their events is of many tenants.
create table audit_log (
    tenant_id uuid        not null references tenants (tenant_id),
    livemode  boolean     not null,
    seq       bigint      not null,
    at        timestamptz not null,
    actor     text        not null,
    action    text        not null,
    object    text        not null,
    before    jsonb,
    after     jsonb,
    source    text        not null,
    prev_hash bytea       not null,
    hash      bytea       not null,
    primary key (tenant_id, livemode, seq),
    constraint audit_log_seq_key unique (tenant_id, seq)
);
create index audit_log_object on audit_log (tenant_id, object, seq); -- for "audit list --object"
select protect('audit_log');
revoke update, delete on audit_log from "${APP_ROLE}";
select open_to_worker('audit_log', 'select');
grant insert on audit_log, inbox, outbox to "${WORKER_ROLE}";

-- Exempt from livemode: one chain per tenant, over both modes.
create table audit_heads (
    tenant_id uuid   primary key references tenants (tenant_id),
    seq       bigint not null,
    hash      bytea  not null
);
alter table audit_heads enable row level security;
alter table audit_heads force row level security;
create policy tenant on audit_heads to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
create policy worker on audit_heads to "${WORKER_ROLE}" using (true);
grant select, insert, update on audit_heads to "${APP_ROLE}";
grant select, update (seq, hash) on audit_heads to "${WORKER_ROLE}";

-- What is known here of the tenants' accounts at payment gateways, kept by the events of payments.
create table gateway_accounts (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id        text    collate "C" not null, -- ga_…
    provider  text    not null,
    connected boolean not null,
    version   bigint  not null,
    events    text    not null default 'ok', -- whether the gateway's events reach the platform, as payments has found
    primary key (tenant_id, livemode, id)
);
select protect('gateway_accounts');
select open_to_worker('gateway_accounts', 'select, insert, update');

-- Exempt from tenant and mode: an operator is a person, who may be a member of several tenants. An address is proven by a link that was
-- mailed to it or created by the command line. Until then its operator belongs to one tenant only.
create table operators (
    id            uuid        primary key,
    email         text        not null,
    email_lower   text        collate "C" not null constraint operators_email_key unique,
    name          text        not null,
    password_hash text, -- argon2id; null until the link of the invitation was used
    totp_secret   bytea, -- sealed; null without a second factor
    totp_step     bigint      not null default 0, -- the last time step whose code was used
    version       bigint      not null default 1,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    disabled_at   timestamptz,
    proven_at     timestamptz -- null: the address is not proven
);
grant select, insert, update on operators to "${APP_ROLE}";
grant select (id, totp_secret), update (totp_secret) on operators to "${WORKER_ROLE}"; -- for reseal

-- Exempt from livemode: a membership holds for both modes. It stays when it has ended, because its version only rises.
create table memberships (
    tenant_id   uuid        not null references tenants (tenant_id),
    operator_id uuid        not null references operators (id),
    role        text        not null,
    version     bigint      not null default 1,
    created_at  timestamptz not null,
    ended_at    timestamptz,
    invited_at  timestamptz, -- equal to ended_at: an invitation that waits until the address is proven
    primary key (tenant_id, operator_id)
);
create index memberships_operator on memberships (operator_id);
alter table memberships enable row level security;
alter table memberships force row level security;
create policy tenant on memberships to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
grant select, insert, update on memberships to "${APP_ROLE}";

-- Exempt from tenant and mode, like the tables of operators that follow.
create table operator_links (
    hash        bytea       primary key, -- SHA-256 of the token in the link
    operator_id uuid        not null references operators (id),
    purpose     text        not null, -- invite or reset
    expires_at  timestamptz not null,
    tenant_id   uuid        references tenants (tenant_id), -- that created it; null: it resets a password
    proves      boolean     not null default false -- whether using it proves the address
);
create index operator_links_operator on operator_links (operator_id);
grant select, insert, delete on operator_links to "${APP_ROLE}";

create table recovery_codes (
    operator_id uuid  not null references operators (id),
    hash        bytea not null,
    primary key (operator_id, hash)
);
grant select, insert, delete on recovery_codes to "${APP_ROLE}";

create table operator_sessions (
    hash        bytea       primary key, -- SHA-256 of the cookie's token
    id          uuid        not null constraint operator_sessions_id_key unique,
    operator_id uuid        references operators (id), -- null before the second factor
    data        bytea       not null,
    address     text        not null default '',
    agent       text        not null default '',
    created_at  timestamptz not null,
    seen_at     timestamptz not null,
    expires_at  timestamptz not null
);
create index operator_sessions_operator on operator_sessions (operator_id);
create index operator_sessions_expires on operator_sessions (expires_at);
grant select, insert, update, delete on operator_sessions to "${APP_ROLE}", "${WORKER_ROLE}";

-- The browsers that an operator has signed in with: failures elsewhere do not delay them.
create table known_browsers (
    operator_id uuid        not null references operators (id),
    hash        bytea       not null, -- SHA-256 of the browser's cookie
    used_at     timestamptz not null,
    primary key (operator_id, hash)
);
grant select, insert, update, delete on known_browsers to "${APP_ROLE}";

create table sign_in_attempts (
    kind       text        not null, -- account, address or browser
    hash       bytea       not null,
    failures   integer     not null,
    last_at    timestamptz not null,
    allowed_at timestamptz not null, -- when the next attempt is allowed
    primary key (kind, hash)
);
create index sign_in_attempts_last on sign_in_attempts (last_at);
grant select, insert, update, delete on sign_in_attempts to "${APP_ROLE}", "${WORKER_ROLE}";

-- What operators have entered into forms of the console when they had to sign in again.
create table form_drafts (
    operator_id uuid        not null references operators (id),
    key         text        not null, -- Idempotency-Key of the form
    sealed      bytea       not null, -- domain.Draft as JSON
    created_at  timestamptz not null,
    primary key (operator_id, key)
);
create index form_drafts_created on form_drafts (created_at);
grant select, insert, update, delete on form_drafts to "${APP_ROLE}", "${WORKER_ROLE}";

-- What is still to end of operators that were disabled, erased or have proven their address. The process that began it ends it, or a worker.
create table operator_endings (
    operator_id uuid        not null references operators (id),
    reason      text        not null, -- why its grants end
    erase       boolean     not null, -- its memberships and what is held of it as a person end too
    actor       text        not null, -- who has asked, and from where, for the audit log
    source      text        not null,
    noted_at    timestamptz not null, -- grants that were given until then end
    due_at      timestamptz not null,
    primary key (operator_id, reason)
);
create index operator_endings_due on operator_endings (due_at);
grant select, insert, update, delete on operator_endings to "${APP_ROLE}";

-- Exempt from livemode: an operator's own views of the console's lists serve both modes.
create table saved_views (
    tenant_id   uuid        not null references tenants (tenant_id),
    operator_id uuid        not null references operators (id),
    id          uuid        not null,
    list        text        not null,
    name        text        not null,
    query       text        not null, -- of the console's address
    created_at  timestamptz not null,
    primary key (tenant_id, operator_id, list, name)
);
alter table saved_views enable row level security;
alter table saved_views force row level security;
create policy tenant on saved_views to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
grant select, insert, update, delete on saved_views to "${APP_ROLE}";

-- Exempt from livemode: an app works in both modes. Apps that have registered themselves (RFC 7591), and those whose client_id is the URL
-- of a document that describes them, are no tenant's data: each tenant may read them, and only functions write them.
create table oauth_apps (
    tenant_id            uuid        references tenants (tenant_id), -- whose operators created it; null: no tenant
    id                   uuid        not null constraint oauth_apps_id_key unique,
    name                 text        not null,
    redirect_uris        text[]      not null,
    scopes               text[]      not null,
    published            boolean     not null,
    reuse_leeway_seconds integer     not null,
    browser_origins      text[]      not null default '{}', -- of pages whose scripts may use its tokens
    version              bigint      not null default 1,
    created_at           timestamptz not null,
    updated_at           timestamptz not null,
    deleted_at           timestamptz,
    used_at              timestamptz, -- the last consent, of an app that registered itself
    network              text, -- from which it registered; null from its first consent on
    verified_at          timestamptz, -- when the platform verified the app and its publisher; null: it is not verified
    verified_publisher   text, -- name that the publisher had then; another name ends the verification
    document_url         text, -- the client_id; null for other apps
    document_fetched_at  timestamptz, -- when the fetch of the stored content began
    document_fresh_until timestamptz -- from then on, a consent fetches the document again
);
create index oauth_apps_tenant on oauth_apps (tenant_id, id);
create index oauth_apps_origins on oauth_apps using gin (browser_origins) where deleted_at is null and browser_origins <> '{}';
create index oauth_apps_registered on oauth_apps (created_at, id) where tenant_id is null;
create index oauth_apps_network on oauth_apps (network) where network is not null;
create unique index oauth_apps_document on oauth_apps (document_url) where document_url is not null;
alter table oauth_apps enable row level security;
alter table oauth_apps force row level security;
create policy tenant on oauth_apps to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
create policy registered on oauth_apps for select to "${APP_ROLE}" using (tenant_id is null);
create policy worker on oauth_apps to "${WORKER_ROLE}" using (tenant_id is null);
grant select, insert, update on oauth_apps to "${APP_ROLE}";
grant select, delete on oauth_apps to "${WORKER_ROLE}";

-- One row for each consent. All tokens that come of it are its family. No history of refresh tokens is kept: a token names its family,
-- and one of a known family that is not the present one was used before.
create table oauth_grants (
    tenant_id          uuid        not null,
    livemode           boolean     not null,
    id                 uuid        not null constraint oauth_grants_id_key unique,
    app_id             uuid        not null references oauth_apps (id),
    operator_id        uuid        not null references operators (id),
    scopes             text[]      not null,
    redirect_uri       text        not null,
    code_hash          bytea       not null constraint oauth_grants_code_key unique,
    code_challenge     text        not null,
    code_expires_at    timestamptz not null,
    exchanged_at       timestamptz, -- null until the code was exchanged
    family_hash        bytea       constraint oauth_grants_family_key unique, -- of the part that all refresh tokens of the family share
    refresh_hash       bytea, -- of the present refresh token
    previous_hash      bytea, -- of the one before it
    successor          bytea, -- sealed: what the previous one was exchanged for, for the leeway only
    rotated_at         timestamptz,
    rotations          bigint      not null default 0,
    refresh_expires_at timestamptz,
    ends_at            timestamptz not null,
    version            bigint      not null default 1,
    created_at         timestamptz not null,
    revoked_at         timestamptz,
    revoked_reason     text,
    primary key (tenant_id, livemode, id)
) with (fillfactor = 80);
create index oauth_grants_operator on oauth_grants (tenant_id, livemode, operator_id, app_id, id) where revoked_at is null;
create index oauth_grants_app on oauth_grants (app_id) where revoked_at is null;
create index oauth_grants_of_app on oauth_grants (app_id); -- for the deletion of apps
-- For the sweeper. None of them contains a column that a refresh changes, so that a refresh remains one write to the heap.
create index oauth_grants_unused on oauth_grants (code_expires_at) where exchanged_at is null;
create index oauth_grants_revoked on oauth_grants (revoked_at) where revoked_at is not null;
create index oauth_grants_ends on oauth_grants (ends_at);
create index oauth_grants_successor on oauth_grants (rotated_at) where successor is not null;
select protect('oauth_grants');
revoke delete on oauth_grants from "${APP_ROLE}";
create policy worker on oauth_grants to "${WORKER_ROLE}" using (true);
grant select, delete, update (successor) on oauth_grants to "${WORKER_ROLE}";

-- The access tokens of a grant, in a ring: the ninth replaces the first.
create table oauth_access_tokens (
    tenant_id  uuid        not null,
    livemode   boolean     not null,
    grant_id   uuid        not null,
    slot       smallint    not null,
    hash       bytea       not null constraint oauth_access_tokens_hash_key unique, -- SHA-256; the token itself is not stored
    scopes     text[], -- null: those of the grant
    expires_at timestamptz not null,
    primary key (tenant_id, livemode, grant_id, slot)
) with (fillfactor = 80);
select protect('oauth_access_tokens');
revoke delete on oauth_access_tokens from "${APP_ROLE}";
select open_to_worker('oauth_access_tokens', 'select, delete');

-- Changes of grants that Redis does not have yet, like key_signals.
create table grant_signals (
    tenant_id uuid    not null references tenants (tenant_id),
    livemode  boolean not null,
    grant_id  uuid    not null,
    value     text    not null, -- 'revoked', or the newest version of the principal
    primary key (tenant_id, livemode, grant_id)
);
create index grant_signals_grant on grant_signals (grant_id); -- an app can have many grants
select protect('grant_signals');
revoke delete on grant_signals from "${APP_ROLE}";
select open_to_worker('grant_signals', 'select, delete');

-- What a tenant used in a mode on a day, in UTC. A row is written once. The last invoice of an erased tenant rests on its usage, which
-- contains its id and numbers only. So the rows stay.
create table usage_days (
    tenant_id                uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode                 boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    day                      date        not null,
    requests_read            bigint      not null,
    requests_write           bigint      not null,
    requests_export          bigint      not null,
    requests_stream          bigint      not null,
    requests_rejected        bigint      not null,
    bookings                 bigint      not null,
    events                   bigint      not null,
    deliveries               bigint      not null,
    stored_rows              bigint, -- null: a service could not count them in time
    stored_bytes             bigint,
    payments                 jsonb       not null, -- domain.Volume by currency
    measured_at              timestamptz not null,
    requests_unauthenticated bigint      not null default 0, -- with the status 401, which requests_rejected contains too
    primary key (tenant_id, livemode, day)
);
create index usage_days_day on usage_days (day, tenant_id, livemode);
select protect('usage_days');
revoke update, delete on usage_days from "${APP_ROLE}";
select open_to_worker('usage_days', 'select, insert');

-- The days, in order: how far the recording of each has come. At most one is not complete.
create table usage_collections (
    day          date        primary key,
    cursor       uuid        not null default '00000000-0000-0000-0000-000000000000', -- the last tenant with rows
    rows         bigint      not null default 0,
    leased_until timestamptz, -- when another process can take it; null: no process has it
    completed_at timestamptz  -- null: not all tenants have rows
);
grant select, insert, update on usage_collections to "${WORKER_ROLE}";

-- +goose ENVSUB OFF
-- The audit log is append only, except for the erasure of the tenant.
-- +goose StatementBegin
create function audit_is_append_only() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and is_erasing(tg_relid) then
        return null;
    end if;
    raise exception 'the audit log is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
create trigger append_only before update or delete or truncate on audit_log
    for each statement execute function audit_is_append_only();

-- +goose StatementBegin
create function usage_outlives_tenant() returns trigger language plpgsql as $$
begin
    if is_erasing(tg_relid) then
        return null;
    end if;
    return old;
end $$;
-- +goose StatementEnd
create trigger outlives_tenant before delete on usage_days for each row execute function usage_outlives_tenant();

-- Doors through row-level security, each for one question. They run as the owner, who sees all rows. Those that requests wait for are
-- plpgsql, which keeps their plans. A function in SQL is planned on each call.
-- +goose StatementBegin
create function key_by_hash(wanted bytea)
returns table (key_id uuid, tenant_id uuid, livemode boolean, name text, scopes text[], version bigint,
               timezone text, currency text, policy_version bigint, clock timestamptz, expires_at timestamptz, revoked boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select k.id, k.tenant_id, k.livemode, k.name, k.scopes, k.version + t.version,
           t.timezone, t.currency::text, t.version, case when not k.livemode then t.clock end, k.expires_at, k.revoked_at is not null
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.hash = wanted;
end $$;
-- +goose StatementEnd

-- Whether a rotation has replaced a key, which then ends at its expires_at like a revoked one. Without a rotation, expires_at was set for
-- the key.
-- +goose StatementBegin
create function key_replaced(wanted uuid) returns table (replaced boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
    return query select k.successor is not null from api_keys k where k.id = wanted;
end $$;
-- +goose StatementEnd

create function key_home(wanted uuid) returns table (tenant_id uuid, livemode boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select k.tenant_id, k.livemode from api_keys k where k.id = wanted
$$;

-- What an access token stands for. Its scopes are those that the grant, the app and the token have; the role is the caller's to apply.
-- +goose StatementBegin
create function access_token_by_hash(wanted bytea)
returns table (grant_id uuid, tenant_id uuid, livemode boolean, app_id uuid, operator_id uuid, name text, origins text[], scopes text[], role text,
               version bigint, expires_at timestamptz,
               timezone text, currency text, policy_version bigint, clock timestamptz, revoked boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select g.id, g.tenant_id, g.livemode, g.app_id, g.operator_id, a.name, a.browser_origins,
           array(select s from unnest(g.scopes) with ordinality u(s, n)
                 where s = any (a.scopes) and (k.scopes is null or s = any (k.scopes)) order by n),
           coalesce(m.role, ''), g.version + a.version + coalesce(m.version, 0) + t.version, k.expires_at,
           t.timezone, t.currency::text, t.version, case when not g.livemode then t.clock end,
           g.revoked_at is not null or a.deleted_at is not null or o.disabled_at is not null or m.operator_id is null or m.ended_at is not null
           or not (a.published or a.tenant_id = g.tenant_id)
    from oauth_access_tokens k
    join oauth_grants g on g.tenant_id = k.tenant_id and g.livemode = k.livemode and g.id = k.grant_id
    join oauth_apps a on a.id = g.app_id
    join operators o on o.id = g.operator_id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where k.hash = wanted;
end $$;
-- +goose StatementEnd

-- A grant by the hash of its code, or of what its refresh tokens share, with what bounds its scopes now.
-- +goose StatementBegin
create function grant_by_hash(code bytea, family bytea)
returns table (tenant_id uuid, livemode boolean, id uuid, app_id uuid, operator_id uuid, scopes text[], redirect_uri text, code_challenge text,
               code_expires_at timestamptz, exchanged_at timestamptz, refresh_hash bytea, previous_hash bytea, successor bytea,
               rotated_at timestamptz, refresh_expires_at timestamptz, ends_at timestamptz, version bigint, created_at timestamptz,
               revoked_at timestamptz, role text, ended boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select g.tenant_id, g.livemode, g.id, g.app_id, g.operator_id,
           array(select s from unnest(g.scopes) with ordinality u(s, n) where s = any (a.scopes) order by n), g.redirect_uri, g.code_challenge,
           g.code_expires_at, g.exchanged_at, g.refresh_hash, g.previous_hash, g.successor,
           g.rotated_at, g.refresh_expires_at, g.ends_at, g.version, g.created_at, g.revoked_at, coalesce(m.role, ''),
           g.revoked_at is not null or a.deleted_at is not null or o.disabled_at is not null or m.operator_id is null or m.ended_at is not null
           or not (a.published or a.tenant_id = g.tenant_id)
    from oauth_grants g
    join oauth_apps a on a.id = g.app_id
    join operators o on o.id = g.operator_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where g.code_hash = code or g.family_hash = family;
end $$;
-- +goose StatementEnd

-- The grants of an operator that are not revoked, over all tenants, newest first.
create function grants_of(wanted uuid)
returns table (tenant_id uuid, livemode boolean, id uuid, tenant text, app text, scopes text[], created_at timestamptz, exchanged boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select g.tenant_id, g.livemode, g.id, t.name, a.name, g.scopes, g.created_at, g.exchanged_at is not null
    from memberships m join oauth_grants g on g.tenant_id = m.tenant_id and g.livemode in (true, false) and g.operator_id = m.operator_id
        join tenants t on t.tenant_id = g.tenant_id join oauth_apps a on a.id = g.app_id
    where m.operator_id = wanted and g.revoked_at is null order by g.id desc
$$;

create function grant_home(wanted uuid) returns table (tenant_id uuid, livemode boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select g.tenant_id, g.livemode from oauth_grants g where g.id = wanted
$$;

-- Signals the new versions of the grants that are not revoked: of one app, wherever they are, or of one member of the current tenant.
create function signal_grants(app uuid, member uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    insert into grant_signals (tenant_id, livemode, grant_id, value)
    select g.tenant_id, g.livemode, g.id, (g.version + a.version + coalesce(m.version, 0) + t.version)::text
    from oauth_grants g
    join oauth_apps a on a.id = g.app_id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where g.revoked_at is null and g.exchanged_at is not null
      and (g.app_id = app or g.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and g.operator_id = member)
    on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value
$$;

-- Signals the new version of every active key and grant of the current tenant, in both modes.
-- +goose StatementBegin
create function signal_tenant_keys() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    insert into key_signals (tenant_id, livemode, key_id, value)
    select k.tenant_id, k.livemode, k.id, (k.version + t.version)::text
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and k.revoked_at is null
    on conflict (tenant_id, livemode, key_id) do update set value = excluded.value;
    insert into grant_signals (tenant_id, livemode, grant_id, value)
    select g.tenant_id, g.livemode, g.id, (g.version + a.version + coalesce(m.version, 0) + t.version)::text
    from oauth_grants g
    join oauth_apps a on a.id = g.app_id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where g.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and g.livemode in (true, false)
      and g.revoked_at is null and g.exchanged_at is not null
    on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value
$$;
-- +goose StatementEnd

-- Revokes the grants of an operator at the current tenant, in both modes, and returns their ids.
create function end_grants(member uuid, at timestamptz, why text) returns setof uuid
language sql volatile security definer set search_path = public, pg_temp as $$
    with ended as (
        update oauth_grants set revoked_at = at, revoked_reason = why, successor = null, version = version + 1
        where tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and livemode in (true, false)
          and operator_id = member and revoked_at is null
        returning tenant_id, livemode, id), told as (
        insert into grant_signals (tenant_id, livemode, grant_id, value) select tenant_id, livemode, id, 'revoked' from ended
        on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value)
    select id from ended
$$;

-- Which of these credentials have ended, and which key has replaced one: the n-th row belongs to the n-th element of each list.
-- +goose StatementBegin
create function ended_credentials(tenants uuid[], kinds text[], wanted uuid[], at timestamptz)
returns table (n bigint, ended boolean, successor uuid)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query
    select a.n, case a.kind
        when 'key' then not exists (select from api_keys k where k.id = a.id and k.tenant_id = a.tenant_id and k.revoked_at is null
            and (k.expires_at is null or k.expires_at > at))
        when 'gr' then not exists (select from oauth_grants g
            join oauth_apps p on p.id = g.app_id and p.deleted_at is null and (p.published or p.tenant_id = g.tenant_id)
            join operators o on o.id = g.operator_id and o.disabled_at is null
            join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id and m.ended_at is null
            where g.id = a.id and g.tenant_id = a.tenant_id and g.livemode in (true, false) and g.revoked_at is null and g.ends_at > at
                and (g.refresh_expires_at is null or g.refresh_expires_at > at))
        when 'op' then not exists (select from memberships m join operators o on o.id = m.operator_id and o.disabled_at is null
            where m.operator_id = a.id and m.tenant_id = a.tenant_id and m.ended_at is null)
        else true end,
        (select k.successor from api_keys k where a.kind = 'key' and k.id = a.id and k.tenant_id = a.tenant_id)
    from unnest(tenants, kinds, wanted) with ordinality a (tenant_id, kind, id, n);
end $$;
-- +goose StatementEnd

-- Who has signed in by a session, with a row for each tenant that it is a member of: operators see all of their tenants at once.
create function signed_in_by(wanted bytea, at timestamptz)
returns table (seen_at timestamptz, created_at timestamptz, id uuid, operator uuid, email text, name text, factor boolean,
               tenant uuid, slug text, tenant_name text, role text, timezone text, currency text, country text, version bigint, clock timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select s.seen_at, s.created_at, s.id, o.id, o.email, o.name, o.totp_secret is not null,
           t.tenant_id, t.slug, t.name, m.role, t.timezone, t.currency::text, t.country::text, t.version, t.clock
    from operator_sessions s
    join operators o on o.id = s.operator_id and o.disabled_at is null
    left join memberships m on m.operator_id = o.id and m.ended_at is null
    left join tenants t on t.tenant_id = m.tenant_id
    where s.hash = wanted and s.expires_at > at
    order by m.created_at, t.slug
$$;

create function memberships_of(wanted uuid)
returns table (tenant_id uuid, operator_id uuid, role text, version bigint, created_at timestamptz, ended_at timestamptz, slug text, tenant_name text)
language sql stable security definer set search_path = public, pg_temp as $$
    select m.tenant_id, m.operator_id, m.role, m.version, m.created_at, m.ended_at, t.slug, t.name
    from memberships m join tenants t on t.tenant_id = m.tenant_id
    where m.operator_id = wanted and m.ended_at is null order by t.name, t.slug
$$;

-- Every tenant that an operator is, was or is invited to be a member of.
create function memberships_ever(wanted uuid) returns table (tenant_id uuid, ended_at timestamptz, invited_at timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select m.tenant_id, m.ended_at, m.invited_at from memberships m where m.operator_id = wanted
$$;

-- Begins the memberships that wait until the address of an operator is proven.
create function begin_memberships(wanted uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update memberships set ended_at = null, invited_at = null, version = version + 1 where operator_id = wanted and ended_at = invited_at
$$;

-- The operators whose data nothing needs after the erasure of a tenant: those who are or were members of it, and of no other one.
create function members_of_only(wanted uuid) returns table (id uuid)
language sql stable security definer set search_path = public, pg_temp as $$
    select o.id from memberships m join operators o on o.id = m.operator_id
    where m.tenant_id = wanted and o.name <> '' -- not erased yet
      and not exists (select from memberships n where n.operator_id = m.operator_id and n.tenant_id <> wanted
          and (n.ended_at is null or n.ended_at = n.invited_at))
    order by o.id limit 1000
$$;

-- The limits of one tenant, for the look-ups of credentials and sessions, which do not know the tenant before.
-- +goose StatementBegin
create function tenant_limits(wanted uuid)
returns table (requests_per_minute integer, credential_requests_per_minute integer, caps jsonb)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select t.requests_per_minute, t.credential_requests_per_minute, t.caps from tenants t where t.tenant_id = wanted;
end $$;
-- +goose StatementEnd

-- The state of any tenant, for the same look-ups.
-- +goose StatementBegin
create function tenant_status(wanted uuid) returns table (status text, reason text, erase_at timestamptz)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select t.status, t.status_reason, t.erase_at from tenants t where t.tenant_id = wanted;
end $$;
-- +goose StatementEnd

-- An app by its client_id, also one of no tenant, which has no publisher.
-- +goose StatementBegin
create function app_by_client_id(wanted uuid)
returns table (tenant_id uuid, id uuid, name text, redirect_uris text[], scopes text[], published boolean, reuse_leeway_seconds integer,
               browser_origins text[], version bigint, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, publisher text)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select coalesce(a.tenant_id, '00000000-0000-0000-0000-000000000000'), a.id, a.name, a.redirect_uris, a.scopes, a.published,
           a.reuse_leeway_seconds, a.browser_origins, a.version, a.created_at, a.updated_at, a.deleted_at, coalesce(t.name, '')
    from oauth_apps a left join tenants t on t.tenant_id = a.tenant_id where a.id = wanted;
end $$;
-- +goose StatementEnd

-- What consent depends on besides the app itself.
-- +goose StatementBegin
create function app_publisher(wanted uuid) returns table (verified_at timestamptz, publisher_status text)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select case when a.verified_publisher = t.name then a.verified_at end, coalesce(t.status, '')
    from oauth_apps a left join tenants t on t.tenant_id = a.tenant_id where a.id = wanted;
end $$;
-- +goose StatementEnd

-- Whether the grants of an app at a tenant have ended with the app's publisher: another tenant that is not active. An app of the tenant
-- itself follows the state of the tenant, and an app that registered itself has no publisher.
-- +goose StatementBegin
create function publisher_ended(app uuid, tenant uuid) returns boolean
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
    return exists (select from oauth_apps a join tenants p on p.tenant_id = a.tenant_id
                   where a.id = app and a.tenant_id <> tenant and p.status <> 'active');
end $$;
-- +goose StatementEnd

-- Gives the published apps of the current tenant a new version, and signals the new versions of their grants at other tenants.
-- +goose StatementBegin
create function signal_published_apps() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update oauth_apps set version = version + 1
    where tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and published and deleted_at is null;
    insert into grant_signals (tenant_id, livemode, grant_id, value)
    select g.tenant_id, g.livemode, g.id, (g.version + a.version + coalesce(m.version, 0) + t.version)::text
    from oauth_apps a
    join oauth_grants g on g.app_id = a.id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where a.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and g.tenant_id <> a.tenant_id
      and g.revoked_at is null and g.exchanged_at is not null
    on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value
$$;
-- +goose StatementEnd

-- Whether an app has registered an origin.
create function origin_is_registered(wanted text) returns boolean
language sql stable security definer set search_path = public, pg_temp as $$
    select exists (select from oauth_apps where browser_origins @> array[wanted] and browser_origins <> '{}' and deleted_at is null)
$$;

-- Adds an app that registers itself, and returns true. If its network has "per_network" unused ones, or there are "places" unused ones,
-- the oldest gives way, so that a flood shortens the time for a consent instead of preventing registrations.
-- +goose StatementBegin
create function register_app(new_id uuid, new_name text, new_uris text[], new_scopes text[], from_network text, at timestamptz,
                                        per_network integer, places integer) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    perform pg_advisory_xact_lock(7591);
    delete from oauth_apps a where a.network is not null and a.id in (
            (select u.id from oauth_apps u where u.network = from_network order by u.created_at desc, u.id desc offset per_network - 1)
            union all
            (select u.id from oauth_apps u where u.tenant_id is null and u.network is not null order by u.created_at desc, u.id desc offset places - 1))
        and not exists (select from oauth_grants g where g.app_id = a.id);
    insert into oauth_apps (id, name, redirect_uris, scopes, published, reuse_leeway_seconds, network, created_at, updated_at)
    values (new_id, new_name, new_uris, new_scopes, true, 10, from_network, at, at);
    return true;
end $$;
-- +goose StatementEnd

-- Records a consent for an app that registered itself. It returns false if there is no such app any more.
-- +goose StatementBegin
create function use_registered_app(wanted uuid, at timestamptz) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    update oauth_apps set used_at = at, network = null where id = wanted and tenant_id is null and deleted_at is null;
    return found;
end $$;
-- +goose StatementEnd

-- Marks an app that registered itself as deleted. It returns false if there is no such app.
-- +goose StatementBegin
create function delete_registered_app(wanted uuid, at timestamptz) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    update oauth_apps set deleted_at = at, network = null, version = version + 1 where id = wanted and tenant_id is null and deleted_at is null;
    return found;
end $$;
-- +goose StatementEnd

-- Stores a valid document, and returns its app and whether the app changed. An older document does not replace a newer one. There is no row
-- if the platform has deleted the app. New apps count like those that registered themselves, by the source of the request.
-- +goose StatementBegin
create function put_document_app(new_id uuid, url text, new_name text, new_uris text[], new_scopes text[], source text, at timestamptz,
                                 fresh_until timestamptz, per_source integer, places integer) returns table (app_id uuid, changed boolean)
language plpgsql volatile security definer set search_path = public, pg_temp as $$
declare
    old oauth_apps;
    differs boolean;
begin
    perform pg_advisory_xact_lock(7591); -- that of register_app
    select * into old from oauth_apps a where a.document_url = url;
    if not found then
        perform register_app(new_id, new_name, new_uris, new_scopes, source, at, per_source, places);
        update oauth_apps a set document_url = url, document_fetched_at = at, document_fresh_until = fresh_until where a.id = new_id;
        return query select new_id, false;
    elsif old.deleted_at is null then
        differs := old.document_fetched_at <= at and (old.name, old.redirect_uris, old.scopes) is distinct from (new_name, new_uris, new_scopes);
        if old.document_fetched_at <= at then
            update oauth_apps a set name = new_name, redirect_uris = new_uris, scopes = new_scopes, version = a.version + differs::int,
                updated_at = case when differs then at else a.updated_at end, document_fetched_at = at, document_fresh_until = fresh_until
            where a.id = old.id;
        end if;
        return query select old.id, differs;
    end if;
end $$;
-- +goose StatementEnd

-- Separates the URL from the deleted app that had it, so that the next consent creates another app. Grants of the deleted app remain ended.
-- It returns false if there is no such app.
-- +goose StatementBegin
create function release_document(url text) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    update oauth_apps set document_url = null where document_url = url and deleted_at is not null;
    return found;
end $$;
-- +goose StatementEnd

-- The apps of an erased tenant that grants of other tenants refer to. The apps have ended, and the rows remain without the tenant and its
-- texts until the sweeper has deleted these grants.
create function release_apps(wanted uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update oauth_apps a set tenant_id = null, name = '', redirect_uris = '{}', browser_origins = '{}', verified_publisher = null, deleted_at = coalesce(a.deleted_at, now())
    where a.tenant_id = wanted and exists (select from tenant_erasures e where e.tenant_id = wanted)
      and exists (select from oauth_grants g where g.app_id = a.id and g.tenant_id <> wanted)
$$;

-- Only the serving process calls the functions that run as the owner.
-- +goose StatementBegin
do $$
declare
    door regprocedure;
begin
    for door in select p.oid from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.prosecdef and p.proname not in ('erase_tenant', 'oldest_write') loop
        execute format('revoke all on function %s from public', door);
        execute format('grant execute on function %s to %I', door, app_role());
    end loop;
end $$;
-- +goose StatementEnd

-- +goose ENVSUB ON
-- +goose Down
drop table usage_collections, usage_days, grant_signals, oauth_access_tokens, oauth_grants, oauth_apps, saved_views, operator_endings, form_drafts,
    sign_in_attempts, known_browsers, operator_sessions, recovery_codes, operator_links, memberships, operators, gateway_accounts, audit_heads,
    audit_log, platform_keys, key_signals, api_keys, tenants;
alter table tenant_erasures drop column closed_by, drop column services, drop column leased_until;
revoke insert on tenant_erasures from "${APP_ROLE}";
revoke insert on inbox, outbox from "${WORKER_ROLE}";
revoke execute on function oldest_write() from "${WORKER_ROLE}";
drop function access_token_by_hash, app_by_client_id, app_publisher, audit_is_append_only, begin_memberships, delete_registered_app, end_grants,
    ended_credentials, grant_by_hash, grant_home, grants_of, key_by_hash, key_home, key_replaced, members_of_only, memberships_ever,
    memberships_of, origin_is_registered, publisher_ended, put_document_app, register_app, release_apps, release_document, search_words,
    signal_grants, signal_published_apps, signal_tenant_keys, signed_in_by, tenant_limits, tenant_status, usage_outlives_tenant,
    use_registered_app;
