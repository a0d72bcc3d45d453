-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- A phone number with an extension is found without it. The background worker writes the search terms of these rows again.
update customers set search_version = -1 where phone ~* '(ext|x|#|durchwahl|poste)';
update leads set search_version = -1 where phone ~* '(ext|x|#|durchwahl|poste)';

-- +goose Down
select 1;
