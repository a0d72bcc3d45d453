-- Statements that break each rule that matters. `.ci/migrations` fails if the linter accepts one.
alter table bookings add column a text not null; -- adding-required-field
alter table bookings add column b timestamptz default clock_timestamp(); -- adding-field-with-default
alter table bookings alter column note set not null; -- adding-not-nullable-field
alter table bookings alter column note type bigint; -- changing-column-type
alter table bookings add constraint c check (a > 0); -- constraint-missing-not-valid
alter table bookings add constraint d foreign key (unit_id) references units; -- adding-foreign-key-constraint
alter table bookings add constraint e unique (number); -- disallowed-unique-constraint
alter table bookings drop column note; -- ban-drop-column
alter table bookings alter column note drop not null; -- ban-drop-not-null
alter table bookings rename column note to text; -- renaming-column
alter table bookings rename to orders; -- renaming-table
drop table bookings; -- ban-drop-table
create index f on bookings (note); -- require-concurrent-index-creation
drop index f; -- require-concurrent-index-deletion
create index concurrently g on bookings (note); -- ban-concurrent-index-creation-in-transaction
create table bookings2 (id uuid); -- prefer-robust-stmts
truncate bookings cascade; -- ban-truncate-cascade
alter table bookings add column h serial primary key; -- adding-serial-primary-key-field
begin; -- transaction-nesting
