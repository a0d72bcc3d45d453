package api_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/services/console/internal/pages"
)

var update = flag.Bool("update", false, "rewrite the pictures of pages, testdata/pictures/*.png")

// pictured are the pages with screenshots: their names and addresses.
var pictured = [][2]string{
	{"today", "today"},
	{"calendar", "calendar?view=week&date=2027-03-01"},
	{"bookings", "bookings"},
	{"booking", "bookings/bk" + oneID},
	{"form", "quotes/new"},
	{"board", "board"},
	{"invoice", "invoices/inv" + oneID},
	{"keys", "keys"},
	{"policy", "policy"},
	{"prices", "prices"},
}

const (
	pictureHeight = 1000 // pixels
	sameColour    = 40   // largest difference of a channel that is not visible
	samePicture   = 0.5  // maximum percentage of pixels that differ
	pictureTime   = 60 * time.Second
)

// TestPictures checks that pages match their screenshots: at three widths, light and dark. It compares a quarter of the
// screenshots, at least one per page, and all of them with TEST_SCALE=full. -update replaces them.
func TestPictures(t *testing.T) {
	browser := os.Getenv("CHROMIUM")
	switch {
	case browser == "":
		t.Skip("CHROMIUM is not set: run `make test`")
	case !pages.Styled():
		t.Skip("the pages have no style: the build found no Node to make it with")
	}
	p := newPlatform(t, options{})
	server := httptest.NewServer(p.pictureServer())
	t.Cleanup(server.Close)
	all := *update || os.Getenv("TEST_SCALE") == "full"
	for look := range 6 {
		width, scheme := []int{360, 768, 1440}[look/2], []string{"light", "dark"}[look%2]
		for i, page := range pictured {
			if !all && (look+i)%4 != 0 {
				continue
			}
			picture := fmt.Sprintf("%s-%d-%s", page[0], width, scheme)
			t.Run(picture, func(t *testing.T) {
				got := photograph(t, browser, server.URL+"/"+scheme+where+page[1], width)
				compare(t, filepath.Join("testdata", "pictures", picture+".png"), got)
			})
		}
	}
}

// pictureServer serves pages as the gateway does for the owner, in the color scheme at the start of the path. All texts use one
// font, and nothing loads later.
func (p *platform) pictureServer() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme := r.Header.Get("Referer")
		path := r.URL.RequestURI()
		for _, s := range []string{"/light/", "/dark/"} {
			if rest, ok := strings.CutPrefix(path, s); ok {
				scheme, path = s, "/"+rest
			}
		}
		if strings.HasSuffix(path, "/live") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		in := request{Method: http.MethodGet, Path: path, Token: "owner", Header: map[string]string{"Accept-Language": "en"}}
		if to := p.serve(p.signed(in)).Header().Get("Location"); strings.Contains(to, "once=") { // the address of the page with the key of its form
			in.Path = to
		}
		signed := p.signed(in)
		signed.AddCookie(&http.Cookie{Name: "holdfast_theme", Value: strings.Trim(scheme, "/")})
		signed.AddCookie(&http.Cookie{Name: "holdfast_style", Value: pages.Style()}) // the page loads the file, which contains the font
		got := httptest.NewRecorder()
		p.engine.ServeHTTP(got, signed)
		body := got.Body.Bytes()
		if strings.Contains(path, "/assets/style-") {
			body = append(body, "\n* { font-family: 'DejaVu Sans' !important; transition: none !important; animation: none !important; caret-color: transparent !important }\n"...)
		}
		w.Header().Set("Content-Type", got.Header().Get("Content-Type"))
		w.WriteHeader(got.Code)
		_, _ = w.Write(body)
	})
}

// photograph takes a screenshot of a page in a frame of that width, because a window cannot be that narrow.
func photograph(t *testing.T, browser, address string, width int) image.Image {
	t.Helper()
	frame := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><body style="margin:0"><iframe src=%q style="border:0;width:%dpx;height:%dpx"></iframe>`, address, width, pictureHeight)
	}))
	defer frame.Close()
	ctx, cancel := context.WithTimeout(t.Context(), pictureTime)
	defer cancel()
	dir := t.TempDir()
	out := filepath.Join(dir, "page.png")
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1",
		"--font-render-hinting=none", "--disable-lcd-text", "--user-data-dir="+dir, fmt.Sprintf("--window-size=%d,%d", max(width, 600), pictureHeight+200), "--virtual-time-budget=4000",
		"--screenshot="+out, frame.URL)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return plain(whole, width)
}

// plain returns the part of a screenshot that shows the page, with sixteen levels of each color, to keep the file small.
func plain(whole image.Image, width int) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, width, pictureHeight))
	for y := range pictureHeight {
		for x := range width {
			r, g, b, _ := whole.At(x, y).RGBA()
			step := func(v uint32) uint8 { return uint8(v>>12) * 17 }
			out.SetRGBA(x, y, color.RGBA{step(r), step(g), step(b), 255})
		}
	}
	return out
}

// compare fails if a screenshot differs from the stored one, and writes the new one next to it.
func compare(t *testing.T, stored string, got image.Image) {
	t.Helper()
	if *update {
		write(t, stored, got)
		return
	}
	raw, err := os.ReadFile(stored)
	if err != nil {
		t.Fatalf("%v: run the test with -update, and look at the picture", err)
	}
	want, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if want.Bounds() != got.Bounds() {
		t.Fatalf("%s is %v large, now it is %v", stored, want.Bounds(), got.Bounds())
	}
	diff, differs := image.NewRGBA(got.Bounds()), 0
	for y := range got.Bounds().Dy() {
		for x := range got.Bounds().Dx() {
			if distance(want.At(x, y), got.At(x, y)) > sameColour {
				differs++
				diff.SetRGBA(x, y, color.RGBA{255, 0, 0, 255})
			}
		}
	}
	if share := 100 * float64(differs) / float64(got.Bounds().Dx()*got.Bounds().Dy()); share > samePicture {
		dir := filepath.Join(os.TempDir(), "holdfast-pictures")
		write(t, filepath.Join(dir, filepath.Base(stored)), got)
		write(t, filepath.Join(dir, "difference-"+filepath.Base(stored)), diff)
		t.Errorf("%.2f %% of %s differ: look at %s", share, stored, dir)
	}
}

// distance returns the largest difference of a channel.
func distance(a, b color.Color) int {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	most := 0
	for _, d := range []int{int(ar>>8) - int(br>>8), int(ag>>8) - int(bg>>8), int(ab>>8) - int(bb>>8)} {
		most = max(most, d, -d)
	}
	return most
}

func write(t *testing.T, path string, picture image.Image) {
	t.Helper()
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted(picture)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// paletted returns a screenshot with a palette if its colors fit into one.
func paletted(picture image.Image) image.Image {
	index := map[color.Color]uint8{}
	var palette color.Palette
	out := image.NewPaletted(picture.Bounds(), nil)
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			c := picture.At(x, y)
			i, ok := index[c]
			if !ok {
				if len(palette) == 256 {
					return picture
				}
				i = uint8(len(palette))
				index[c], palette = i, append(palette, c)
			}
			out.Pix[out.PixOffset(x, y)] = i
		}
	}
	out.Palette = palette
	return out
}
