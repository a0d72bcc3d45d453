package app

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/quota"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// ErrNotFetched reports that the document of a client_id is needed and was not fetched, because nobody is signed in.
var ErrNotFetched = errors.New("the document of the client is not fetched before the sign-in")

// DocumentFetcher fetches documents. peers.ClientDocuments implements it.
type DocumentFetcher interface {
	Fetch(ctx context.Context, url string) (d domain.ClientDocument, lifetime time.Duration, err error)
}

// DocumentSource is on whose behalf a document is fetched. The zero value is nobody: only stored documents are used.
type DocumentSource struct {
	Operator domain.OperatorID // signed in
	Network  string            // of an app that is not known yet
}

func (s DocumentSource) key() string {
	if s.Operator.IsZero() {
		return s.Network
	}
	return s.Operator.String()
}

// ClientDocuments finds the apps whose client_id is the URL of a document: draft-ietf-oauth-client-id-metadata-document. It stores valid
// documents as apps that belong to no tenant, and fetches one again when it is no longer fresh. Invalid documents are not stored.
type ClientDocuments struct {
	app               *App
	fetcher           DocumentFetcher
	fetches           singleflight.Group // by URL
	operators, pushes *quota.Places      // so that strangers leave the places of signed-in operators
	limit             documentLimit
	failures          failures
}

// NewClientDocuments returns the documents that a fetcher fetches for an app.
func NewClientDocuments(a *App, fetcher DocumentFetcher) *ClientDocuments {
	places := func() *quota.Places { return quota.NewPlaces(domain.DocumentPlaces, domain.DocumentPlacesEach) }
	return &ClientDocuments{
		app: a, fetcher: fetcher, operators: places(), pushes: places(),
		limit: documentLimit{seed: maphash.MakeSeed()}, failures: failures{seed: maphash.MakeSeed()},
	}
}

// Stored returns the app of a client_id as it is stored, however old its document is, or domain.ErrAppNotFound. Tokens remain valid while
// the site of the app cannot be reached.
func (d *ClientDocuments) Stored(ctx context.Context, url string) (domain.PublishedApp, error) {
	stored, err := store.StoredDocument(ctx, d.app.DB.Read(ctx), url)
	if err != nil {
		return domain.PublishedApp{}, err
	}
	return d.app.AppByID(ctx, stored.ID)
}

// Fresh returns the app of a client_id, and fetches its document if none is fresh. It returns domain.ErrAppNotFound if the platform has
// deleted the app, a domain.DocumentError if the client_id or its document cannot be used, ErrNotFetched if nobody is signed in, and
// apperr.ErrUnavailable if the source or the process fetches too many documents.
func (d *ClientDocuments) Fresh(ctx context.Context, url string, source DocumentSource) (domain.PublishedApp, error) {
	id, err := d.fresh(ctx, url)
	if err != nil {
		return domain.PublishedApp{}, err
	}
	if id.IsZero() {
		if id, err = d.fetch(ctx, url, source); err != nil {
			return domain.PublishedApp{}, err
		}
	}
	return d.app.AppByID(ctx, id)
}

// fresh returns the app of a stored document that is fresh, or the zero id.
func (d *ClientDocuments) fresh(ctx context.Context, url string) (domain.AppID, error) {
	if err := domain.CheckClientURL(url); err != nil {
		return domain.AppID{}, err
	}
	stored, err := store.StoredDocument(ctx, d.app.DB.Read(ctx), url)
	switch {
	case err == nil && stored.DeletedAt != nil:
		return domain.AppID{}, domain.ErrAppNotFound
	case errors.Is(err, domain.ErrAppNotFound) || err == nil && !d.app.now().Before(stored.FreshUntil):
		return domain.AppID{}, nil
	}
	return stored.ID, err
}

// fetch fetches and stores the document at a URL, once at a time, within the limits of the source.
func (d *ClientDocuments) fetch(ctx context.Context, url string, source DocumentSource) (domain.AppID, error) {
	key := source.key()
	if key == "" {
		return domain.AppID{}, ErrNotFetched
	}
	if err := d.failures.of(url, d.app.now()); err != nil {
		return domain.AppID{}, err
	}
	places := d.pushes
	if !source.Operator.IsZero() {
		places = d.operators
	}
	if !d.limit.allow(key, d.app.now()) || !places.TryAcquire(key) {
		return domain.AppID{}, apperr.ErrUnavailable.WithCause(errors.New("too many client ID metadata documents are fetched"))
	}
	defer places.Release(key)
	found, err, _ := d.fetches.Do(url, func() (any, error) {
		return d.refresh(context.WithoutCancel(ctx), url, key) // others wait for it too
	})
	id, _ := found.(domain.AppID)
	return id, err
}

// refresh fetches the document at a URL, unless another request has just stored it, and stores it.
func (d *ClientDocuments) refresh(ctx context.Context, url, source string) (domain.AppID, error) {
	if id, err := d.fresh(ctx, url); err != nil || !id.IsZero() {
		return id, err
	}
	began := d.app.now()
	document, lifetime, err := d.get(ctx, url)
	var described domain.App
	if err == nil {
		described, err = document.App(url, d.app.Scopes)
	}
	if err != nil {
		d.failures.add(url, err, d.app.now())
		return domain.AppID{}, err
	}
	described.ID = domain.NewAppID()
	id, changed := domain.AppID{}, false
	err = d.app.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		id, changed, err = store.PutDocument(ctx, tx, store.NewDocument{
			URL: url, App: described, Source: "document " + source, // not the places of registrations of the same network
			FetchedAt: began, FreshUntil: began.Add(domain.LifetimeOf(lifetime)),
		})
		if err != nil || !changed {
			return err
		}
		return store.InvalidateGrants(ctx, tx, &id, nil) // its tokens lose scopes that the document has no longer
	})
	if err == nil && changed {
		d.app.publish(ctx, ids.Tenant{})
	}
	return id, err
}

func (d *ClientDocuments) get(ctx context.Context, url string) (domain.ClientDocument, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, domain.DocumentTimeout)
	defer cancel()
	return d.fetcher.Fetch(ctx, url)
}

const (
	limitCounters = 4096
	failurePlaces = 1024
)

// documentLimit counts the fetches of each source in the current minute. Sources can share a counter: the memory is fixed, and no source can
// displace another one's count.
type documentLimit struct {
	seed maphash.Seed

	mu     sync.Mutex
	minute int64
	counts [limitCounters]uint8
}

func (l *documentLimit) allow(source string, now time.Time) bool {
	at := maphash.String(l.seed, source) % limitCounters
	l.mu.Lock()
	defer l.mu.Unlock()
	if minute := now.Unix() / 60; minute != l.minute {
		l.minute, l.counts = minute, [limitCounters]uint8{}
	}
	if l.counts[at] >= domain.DocumentsPerMinute {
		return false
	}
	l.counts[at]++
	return true
}

// failures are the URLs whose documents could not be used a moment ago. A URL can displace another one, which is then fetched again: the
// memory is fixed.
type failures struct {
	seed maphash.Seed

	mu     sync.Mutex
	places [failurePlaces]failure
}

type failure struct {
	hash  uint64
	until time.Time
	err   error
}

// of returns why the document at a URL could not be used, or nil.
func (f *failures) of(url string, now time.Time) error {
	hash := maphash.String(f.seed, url)
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.places[hash%failurePlaces]; last.hash == hash && now.Before(last.until) {
		return last.err
	}
	return nil
}

func (f *failures) add(url string, err error, now time.Time) {
	hash := maphash.String(f.seed, url)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places[hash%failurePlaces] = failure{hash, now.Add(domain.FailureMemory), err}
}
