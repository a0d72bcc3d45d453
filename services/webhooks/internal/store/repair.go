package store

// Copies is the query of the command repair: the events of the log since a time. Their bodies show the version of the object, and its
// number if it has one.
const Copies = `
	select split_part(object_id, '_', 1), tenant_id, livemode, object_id, (body->>'resource_version')::bigint, type, coalesce(body->'data'->'object'->>'number', '')
	from (select e.tenant_id, e.livemode, e.object_id, e.type, convert_from(e.body, 'UTF8')::json as body from events e
		where e.id >= @first and not e.sample) logged`
