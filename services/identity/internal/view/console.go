package view

import (
	"encoding/json"
	"strconv"
	"time"

	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// Key returns an API key in the form of the console. secret is "" except for a key that was just created.
func Key(k domain.Key, secret string, now time.Time) internalapi.Key {
	out := internalapi.Key{
		ID: k.ID.String(), Name: k.Name, Mode: string(k.Mode()), Status: k.Status(now), Scopes: k.Scopes, CreatedAt: k.CreatedAt.UTC(), LastUsedAt: utc(k.LastUsedAt),
		ExpiresAt: utc(k.ExpiresAt), RevokedAt: utc(k.RevokedAt),
	}
	if secret != "" {
		out.Secret = &secret
	}
	return out
}

// Keys returns API keys in the form of the console.
func Keys(list []domain.Key, now time.Time) internalapi.KeyList {
	out := internalapi.KeyList{Data: make([]internalapi.Key, len(list))}
	for i, k := range list {
		out.Data[i] = Key(k, "", now)
	}
	return out
}

// AuditPage returns a page of the audit log. whole specifies that it also contains the source of each change.
func AuditPage(list []domain.Record, more, whole bool) internalapi.AuditPage {
	out := internalapi.AuditPage{Data: make([]internalapi.AuditRecord, len(list))}
	for i, r := range list {
		a := AuditRecord(r)
		out.Data[i] = internalapi.AuditRecord{
			Sequence: a.Sequence, At: a.At, Mode: a.Mode, Actor: a.Actor, Action: a.Action, Object: a.Object, Before: orNull(a.Before), After: orNull(a.After),
		}
		if whole {
			out.Data[i].Source = &a.Source
		}
	}
	if more {
		out.NextCursor = new(strconv.FormatInt(out.Data[len(list)-1].Sequence, 10))
	}
	return out
}

// orNull returns nil if raw is empty.
func orNull(raw json.RawMessage) *json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return &raw
}

// AuditVerdict returns the result of verifying a tenant's audit log. broken is "" if the chain is valid.
func AuditVerdict(records int64, head domain.PrintedHead, broken string) internalapi.AuditVerdict {
	out := internalapi.AuditVerdict{Records: records, Head: internalapi.AuditHead{Sequence: head.Seq, Hash: head.Hash}}
	if broken != "" {
		out.Broken = &broken
	}
	return out
}

// View returns a saved view in the form of the console.
func View(v domain.SavedView) internalapi.View {
	return internalapi.View{ID: v.ID.String(), List: v.List, Name: v.Name, Query: v.Query, CreatedAt: v.CreatedAt.UTC()}
}

// Views returns saved views in the form of the console.
func Views(list []domain.SavedView) internalapi.ViewList {
	out := internalapi.ViewList{Data: make([]internalapi.View, len(list))}
	for i, v := range list {
		out.Data[i] = View(v)
	}
	return out
}

// Member returns an operator in the form of the console.
func Member(m domain.Member) internalapi.Member {
	o := OperatorForAdmin(m)
	return internalapi.Member{ID: o.ID, Email: o.Email, Name: o.Name, Role: o.Role, State: o.State, SecondFactor: o.SecondFactor, CreatedAt: o.CreatedAt}
}

// Members returns operators in the form of the console.
func Members(list []domain.Member) internalapi.MemberList {
	out := internalapi.MemberList{Data: make([]internalapi.Member, len(list))}
	for i, m := range list {
		out.Data[i] = Member(m)
	}
	return out
}

// App returns an OAuth app in the form of the console.
func App(a domain.App) internalapi.App {
	return internalapi.App{
		ID: a.ID.String(), Name: a.Name, RedirectURIs: a.RedirectURIs, Scopes: a.Scopes, Published: a.Published, ReuseLeewaySeconds: a.ReuseLeewaySeconds,
		BrowserOrigins: a.BrowserOrigins, CreatedAt: a.CreatedAt.UTC(), UpdatedAt: a.UpdatedAt.UTC(),
	}
}

// Apps returns OAuth apps in the form of the console.
func Apps(list []domain.App) internalapi.AppList {
	out := internalapi.AppList{Data: make([]internalapi.App, len(list))}
	for i, a := range list {
		out.Data[i] = App(a)
	}
	return out
}

// EndedCredentials returns the credentials of a list that have ended or were rotated, from the states of the whole list.
func EndedCredentials(list []internalapi.CredentialRef, states []domain.CredentialState) internalapi.EndedCredentials {
	out := internalapi.EndedCredentials{Data: []internalapi.EndedCredential{}}
	for _, s := range states {
		if !s.Ended && s.Successor == nil {
			continue
		}
		ref := list[s.N-1]
		one := internalapi.EndedCredential{TenantID: ref.TenantID, ID: ref.ID}
		if s.Successor != nil {
			one.Successor = new(s.Successor.String())
		}
		out.Data = append(out.Data, one)
	}
	return out
}
