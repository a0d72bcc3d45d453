package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/obs"
	"holdfast.dev/proto"

	"holdfast.dev/services/gateway/internal/api/docs"
)

func newRouter(t testing.TB) (http.Handler, *contract.Contract) {
	t.Helper()
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := docs.New(proto.OpenAPI, "https://booking.test", spec, docs.Embedded())
	if err != nil {
		t.Fatal(err)
	}
	return (&Server{Contract: spec, Docs: pages}).Handler(), spec
}

// TestTheRouterFollowsTheContract compares gin's router with a plain search of the contract, on every path of the
// contract and on paths that differ in one segment. A request without a credential whose operation was found gets 401.
func TestTheRouterFollowsTheContract(t *testing.T) {
	t.Parallel()
	router, spec := newRouter(t)
	methods := []string{"GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "OTHER"}
	for _, path := range variants(spec) {
		for _, method := range methods {
			op, _, allow := contracttest.Match(spec, method, path)
			if get, _, _ := contracttest.Match(spec, http.MethodGet, path); get != nil && get.Public { // such an operation also allows HEAD
				if method == http.MethodHead {
					op = get
				}
				allow = slices.Sorted(slices.Values(append([]string{http.MethodHead}, allow...)))
			}
			for _, base := range bases {
				ctx, line := obs.WithLine(t.Context())
				r := httptest.NewRequestWithContext(ctx, method, "/", nil)
				r.URL.Path, r.URL.RawPath, r.RequestURI = base+strings.ReplaceAll(path, "%2F", "/"), base+path, base+path
				rec := httptest.NewRecorder()
				router.ServeHTTP(rec, r)
				status, route := http.StatusUnauthorized, ""
				switch {
				case op != nil:
					route = op.Path
					if op.Public { // the response comes from the service, which this router does not have
						status = http.StatusInternalServerError
					}
				case len(allow) > 0:
					status = http.StatusMethodNotAllowed
				default:
					status = http.StatusNotFound
				}
				got := rec.Header().Get("Allow")
				if rec.Code != status || line.Route() != route || op == nil && got != strings.Join(allow, ", ") {
					t.Fatalf("%s %s: %d, route %q, Allow %q; want %d, %q, %v", method, base+path, rec.Code, line.Route(), got, status, route, allow)
				}
			}
		}
	}
}

// variants returns the paths of the contract, and each of them with a segment replaced, shortened, doubled and removed.
func variants(spec *contract.Contract) []string {
	texts := []string{"", "x", "a%2Fb"}
	for _, op := range spec.Operations() {
		for word := range strings.SplitSeq(op.Path[1:], "/") {
			if !strings.HasPrefix(word, "{") {
				texts = append(texts, word, word[:len(word)-1], word+"x")
			}
		}
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	var paths []string
	for _, op := range spec.Operations() {
		segments := strings.Split(op.Path, "/")[1:]
		for i, segment := range segments {
			if strings.HasPrefix(segment, "{") {
				segments[i] = "x"
			}
		}
		join := func(parts ...[]string) { paths = append(paths, "/"+strings.Join(slices.Concat(parts...), "/")) }
		for i := range segments {
			for _, word := range texts {
				join(segments[:i], []string{word}, segments[i+1:])
			}
			join(segments[:i], segments[i+1:])
			join(segments[:i+1], segments[i:])
		}
		for _, word := range texts {
			join(segments, []string{word})
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
