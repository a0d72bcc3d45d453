// Package dnstest provides tests with a resolver for names of their own, whose addresses can change.
package dnstest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone returns the addresses of a name without its final dot. A name without addresses does not exist.
type Zone func(name string) []netip.Addr

// Resolver returns a resolver that queries a name server for the zone.
func (z Zone) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go z.serve(there)
		return here, nil
	}}
}

// serve answers DNS over TCP until the client closes the connection.
func (z Zone) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		response, err := z.respond(query)
		if err != nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(response))), response...)); err != nil {
			return
		}
	}
}

func (z Zone) respond(query []byte) ([]byte, error) {
	var q dnsmessage.Message
	if err := q.Unpack(query); err != nil || len(q.Questions) != 1 {
		return nil, fmt.Errorf("a strange question: %w", err)
	}
	question := q.Questions[0]
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, RecursionAvailable: true}, Questions: q.Questions}
	addrs := z(strings.TrimSuffix(strings.ToLower(question.Name.String()), "."))
	if len(addrs) == 0 {
		out.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		head := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: dnsmessage.ClassINET}
		switch {
		case a.Is4() && question.Type == dnsmessage.TypeA:
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case !a.Is4() && question.Type == dnsmessage.TypeAAAA:
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return out.Pack()
}
