package view

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
	"holdfast.dev/proto/yamlnode"
)

// webhookEvent is the component that lists the typed events.
const webhookEvent = "WebhookEvent"

// typeEvents replaces Event by WebhookEvent: one object for each event type, whose data contains the resource of the type.
func typeEvents(doc *yaml.Node) error {
	schemas := yamlnode.Get(doc, "components", "schemas")
	event := yamlnode.Get(schemas, "Event")
	if event == nil {
		return nil
	}
	alternatives, byType := &yaml.Node{Kind: yaml.SequenceNode}, yamlnode.Mapping()
	for _, t := range proto.EventTypes {
		resource, err := resourceOf(schemas, t.Name)
		if err != nil {
			return err
		}
		data := resource + "EventData"
		if yamlnode.Get(schemas, data) == nil {
			yamlnode.Set(schemas, data, eventData(schemas, resource))
		}
		name := typeName(t.Name)
		yamlnode.Set(schemas, name, typedEvent(event, t, data))
		alternatives.Content = append(alternatives.Content, yamlnode.Reference("schemas", name))
		yamlnode.Set(byType, t.Name, yamlnode.Scalar(schemaRef+name))
	}
	union, discriminator := yamlnode.Mapping(), yamlnode.Mapping()
	yamlnode.Set(discriminator, "propertyName", yamlnode.Scalar("type"))
	yamlnode.Set(discriminator, "mapping", byType)
	yamlnode.Set(union, "description", yamlnode.Scalar("An event. `type` determines the object in `data`. Ignore an event whose type you do not know. An object of an older event can lack properties that were added later."))
	yamlnode.Set(union, "oneOf", alternatives)
	yamlnode.Set(union, "discriminator", discriminator)
	yamlnode.Set(schemas, webhookEvent, union)
	redirect(doc, map[string]string{"Event": webhookEvent})
	yamlnode.Remove(schemas, "Event")
	yamlnode.Remove(schemas, "EventData")
	return nil
}

// typeName returns the component for an event type: BookingCreatedEvent for booking.created.
func typeName(eventType string) string {
	var name strings.Builder
	for word := range strings.FieldsFuncSeq(eventType, func(r rune) bool { return r == '.' || r == '_' }) {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String() + "Event"
}

// resourceOf returns the component of the resource that events of a type contain: the one whose property "object" is the first part
// of the type. payment.succeeded contains the payment intent.
func resourceOf(schemas *yaml.Node, eventType string) (string, error) {
	kind, _, _ := strings.Cut(eventType, ".")
	if kind == "payment" {
		kind = "payment_intent"
	}
	for name, schema := range yamlnode.Pairs(schemas) {
		if yamlnode.Text(yamlnode.Get(schema, "properties", "object"), "const") == kind {
			return name, nil
		}
	}
	return "", fmt.Errorf("no schema has the object %s of the event type %s", kind, eventType)
}

// eventData returns the schema of data for a resource.
func eventData(schemas *yaml.Node, resource string) *yaml.Node {
	data := yamlnode.Clone(yamlnode.Get(schemas, "EventData"))
	before := yamlnode.Clone(yamlnode.Get(data, "properties", "object"))
	object := yamlnode.Reference("schemas", resource)
	yamlnode.Set(object, "description", yamlnode.Get(before, "description"))
	yamlnode.Set(yamlnode.Get(data, "properties"), "object", object)
	return data
}

// typedEvent returns Event with one type and its data.
func typedEvent(event *yaml.Node, t proto.EventType, data string) *yaml.Node {
	typed := yamlnode.Clone(event)
	yamlnode.Set(typed, "description", yamlnode.Scalar(t.Description))
	properties := yamlnode.Get(typed, "properties")
	kind := yamlnode.MappingOf("type", "string")
	yamlnode.Set(kind, "const", yamlnode.Scalar(t.Name))
	yamlnode.Set(kind, "description", yamlnode.Scalar("Always `"+t.Name+"`."))
	yamlnode.Set(properties, "type", kind)
	reference := yamlnode.Reference("schemas", data)
	yamlnode.Set(reference, "description", yamlnode.Get(properties, "data", "description"))
	yamlnode.Set(properties, "data", reference)
	return typed
}
