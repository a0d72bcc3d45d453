package pg

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuidValue is a value that is stored as a uuid, such as ids.ID. The uuid of zeros is stored as NULL.
type uuidValue interface{ UUID() [16]byte }

// uuidTarget is a variable that a uuid is read into.
type uuidTarget interface{ SetUUID(u [16]byte) }

// registerUUID registers the ids of libs/ids with a connection, in the binary format. Other connections read and write them as
// text, through database/sql's interfaces.
func registerUUID(conn *pgx.Conn) {
	m := conn.TypeMap()
	uuid := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}}
	m.RegisterType(uuid)
	m.RegisterType(&pgtype.Type{Name: "_uuid", OID: pgtype.UUIDArrayOID, Codec: &pgtype.ArrayCodec{ElementType: uuid}})
}

// uuidCodec is pgx's codec for uuids, extended by ids.
type uuidCodec struct{ pgtype.UUIDCodec }

// PlanEncode implements pgtype.Codec.
func (c uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(uuidValue); ok && format == pgtype.BinaryFormatCode {
		return encodeUUID{}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

// PlanScan implements pgtype.Codec.
func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(uuidTarget); ok && format == pgtype.BinaryFormatCode {
		return scanUUID{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type encodeUUID struct{}

// Encode implements pgtype.EncodePlan.
func (encodeUUID) Encode(value any, buf []byte) ([]byte, error) {
	id, ok := value.(uuidValue)
	if !ok {
		return nil, fmt.Errorf("encode uuid: %T is not a uuid", value)
	}
	u := id.UUID()
	if u == [16]byte{} {
		return nil, nil
	}
	return append(buf, u[:]...), nil
}

type scanUUID struct{}

// Scan implements pgtype.ScanPlan.
func (scanUUID) Scan(src []byte, target any) error {
	id, ok := target.(uuidTarget)
	if !ok {
		return fmt.Errorf("read uuid: cannot store it in %T", target)
	}
	var u [16]byte
	if src != nil && copy(u[:], src) != len(u) {
		return fmt.Errorf("read uuid: %d bytes", len(src))
	}
	id.SetUUID(u)
	return nil
}
