package domain_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/identity/internal/domain"
)

// pngOf returns an image as PNG.
func pngOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// jpegOf returns an image as JPEG.
func jpegOf(t testing.TB, img image.Image, quality int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bombOf returns a small PNG whose header says that it has another size.
func bombOf(t testing.TB, width, height uint32) []byte {
	t.Helper()
	out := pngOf(t, image.NewGray(image.Rect(0, 0, 1, 1)))
	header := out[12:29] // the type and the data of the first chunk
	binary.BigEndian.PutUint32(header[4:], width)
	binary.BigEndian.PutUint32(header[8:], height)
	binary.BigEndian.PutUint32(out[29:], crc32.ChecksumIEEE(header))
	return out
}

// noise fills bytes with random ones, which cannot be compressed.
func noise(pix []byte) {
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(pix)
}

// decoded returns the image of a logo, and fails the test unless it is the kind of image that documents can show.
func decoded(t *testing.T, l domain.Logo) image.Image {
	t.Helper()
	img, format, err := image.Decode(bytes.NewReader(l.Content))
	if err != nil || "image/"+format != l.MediaType() {
		t.Fatalf("%s as %s: %v", l.MediaType(), format, err)
	}
	if format == "png" && (l.Content[24] > 8 || l.Content[25]&4 != 0 || l.Content[28] != 0 || bytes.Contains(l.Content, []byte("tRNS"))) {
		t.Errorf("the header is % x", l.Content[16:29])
	}
	return img
}

// TestParseLogo checks that each kind of PNG and JPEG image is stored in a form that documents can show, in its size and its colors on a
// white ground.
func TestParseLogo(t *testing.T) {
	t.Parallel()
	frame := image.Rect(0, 0, 30, 20)
	fill := func(img interface {
		image.Image
		Set(x, y int, c color.Color)
	}, c color.Color,
	) image.Image {
		for i := range 600 {
			img.Set(i%30, i/30, c)
		}
		return img
	}
	red, half, clear := color.NRGBA{255, 0, 0, 255}, color.NRGBA{255, 0, 0, 128}, color.NRGBA{255, 0, 0, 0}
	palette := color.Palette{red, half, clear}
	for name, c := range map[string]struct {
		upload []byte
		want   color.RGBA
	}{
		"opaque":      {pngOf(t, fill(image.NewNRGBA(frame), red)), color.RGBA{255, 0, 0, 255}},
		"transparent": {pngOf(t, fill(image.NewNRGBA(frame), clear)), color.RGBA{255, 255, 255, 255}},
		"translucent": {pngOf(t, fill(image.NewNRGBA(frame), half)), color.RGBA{255, 127, 127, 255}},
		"16 bits":     {pngOf(t, fill(image.NewNRGBA64(frame), half)), color.RGBA{255, 127, 127, 255}},
		"palette":     {pngOf(t, fill(image.NewPaletted(frame, palette), half)), color.RGBA{255, 127, 127, 255}},
		"gray":        {pngOf(t, fill(image.NewGray(frame), color.Gray{90})), color.RGBA{90, 90, 90, 255}},
		"16-bit gray": {pngOf(t, fill(image.NewGray16(frame), color.Gray{90})), color.RGBA{90, 90, 90, 255}},
		"photo":       {jpegOf(t, fill(image.NewRGBA(frame), red), 100), color.RGBA{254, 0, 0, 255}},
		"gray photo":  {jpegOf(t, fill(image.NewGray(frame), color.Gray{90}), 100), color.RGBA{90, 90, 90, 255}},
	} {
		logo, err := domain.ParseLogo(c.upload)
		if err != nil || len(logo.Hash) != 64 {
			t.Errorf("%s: %q, %v", name, logo.Hash, err)
			continue
		}
		img := decoded(t, logo)
		r, g, b, _ := img.At(15, 10).RGBA()
		got := color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
		near := func(a, b uint8) bool { return max(a, b)-min(a, b) <= 2 }
		if img.Bounds() != frame || !near(got.R, c.want.R) || !near(got.G, c.want.G) || !near(got.B, c.want.B) {
			t.Errorf("%s: %v of %v, want %v", name, got, img.Bounds(), c.want)
		}
		if again, err := domain.ParseLogo(c.upload); err != nil || again.Hash != logo.Hash {
			t.Errorf("%s: the same upload has the hash %q, %v", name, again.Hash, err)
		}
	}
}

// TestLogosHaveNothingElse checks that a logo contains neither metadata nor what follows the image in its file.
func TestLogosHaveNothingElse(t *testing.T) {
	t.Parallel()
	const hidden = "<script>52.5200 N 13.4050 E</script>"
	frame := image.NewRGBA(image.Rect(0, 0, 10, 10))
	photo, drawing := jpegOf(t, frame, 90), pngOf(t, frame)
	comment := append([]byte{0xff, 0xe1, 0, byte(len(hidden) + 2)}, hidden...)
	text := append(binary.BigEndian.AppendUint32(nil, uint32(len(hidden))), "tEXt"+hidden...)
	text = binary.BigEndian.AppendUint32(text, crc32.ChecksumIEEE(text[4:]))
	for name, upload := range map[string][]byte{
		"JPEG with metadata": bytes.Join([][]byte{photo[:2], comment, photo[2:]}, nil), "JPEG with an appendix": append(bytes.Clone(photo), hidden...),
		"PNG with metadata": bytes.Join([][]byte{drawing[:33], text, drawing[33:]}, nil), "PNG with an appendix": append(bytes.Clone(drawing), hidden...),
	} {
		logo, err := domain.ParseLogo(upload)
		if err != nil || bytes.Contains(logo.Content, []byte("script")) {
			t.Errorf("%s: %v, %q", name, err, logo.Content)
		}
	}
}

// TestLargestLogos checks that the largest legal images are accepted, and that a stored logo is at most twice as large as an upload can
// be.
func TestLargestLogos(t *testing.T) {
	t.Parallel()
	const side = domain.MaxLogoSide
	whole := image.Rect(0, 0, side, side)
	gray, few := image.NewGray(image.Rect(0, 0, 508, 508)), image.NewPaletted(image.Rect(0, 0, 1020, 1020), color.Palette{color.Black, color.White, color.Transparent, color.Gray{90}})
	colors := image.NewNRGBA(image.Rect(0, 0, 250, 250))
	noise(gray.Pix)
	noise(few.Pix)
	noise(colors.Pix)
	for i := range few.Pix {
		few.Pix[i] &= 3
	}
	rough := image.NewRGBA(whole)
	noise(rough.Pix[:1800<<10])
	for name, upload := range map[string][]byte{
		"size": pngOf(t, image.NewNRGBA64(whole)), "shades": pngOf(t, gray), "four colors": pngOf(t, few), "colors": pngOf(t, colors),
		"photo": jpegOf(t, rough, 40), "line": pngOf(t, image.NewGray(image.Rect(0, 0, side, 1))),
	} {
		logo, err := domain.ParseLogo(upload)
		t.Logf("%s: %d bytes become %d", name, len(upload), len(logo.Content))
		if err != nil || len(logo.Content) > 2*domain.MaxLogoBytes {
			t.Errorf("%s: %d bytes become %d: %v", name, len(upload), len(logo.Content), err)
		}
	}
}

// TestWrongLogos checks that an invalid upload is rejected with the reason, before it costs more than a legal one.
func TestWrongLogos(t *testing.T) {
	t.Parallel()
	frame := image.NewRGBA(image.Rect(0, 0, 100, 100))
	photo, drawing := jpegOf(t, frame, 90), pngOf(t, frame)
	var moving bytes.Buffer
	if err := gif.Encode(&moving, frame, nil); err != nil {
		t.Fatal(err)
	}
	large := image.NewNRGBA(image.Rect(0, 0, 300, 300))
	noise(large.Pix)
	const (
		kind    = "Must be a PNG or JPEG image."
		pixels  = "Must be at most 2,000 pixels wide and 2,000 pixels high."
		damaged = "The image is damaged."
	)
	for name, c := range map[string]struct {
		upload []byte
		want   string
	}{
		"nothing": {nil, kind}, "text": {[]byte("logo"), kind}, "GIF": {moving.Bytes(), kind}, "zeros": {make([]byte, 100), kind},
		"SVG":      {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), kind},
		"PDF":      {[]byte("%PDF-1.7\n"), kind},
		"SVG, PNG": {append([]byte(`<svg/>`), drawing...), kind},
		"wide":     {pngOf(t, image.NewGray(image.Rect(0, 0, 2001, 1))), pixels}, "high": {pngOf(t, image.NewGray(image.Rect(0, 0, 1, 2001))), pixels},
		"bomb": {bombOf(t, 1<<31-1, 1<<31-1), kind}, "large bomb": {bombOf(t, 100_000, 100_000), pixels}, "high photo": {jpegOf(t, image.NewGray(image.Rect(0, 0, 1, 2001)), 90), pixels},
		"small bomb": {bombOf(t, 2000, 2000), damaged}, "half a PNG": {drawing[:len(drawing)/2], damaged}, "half a JPEG": {photo[:len(photo)-200], damaged},
		"header only": {drawing[:33], damaged},
		"many scans":  {append(bytes.Clone(photo), bytes.Repeat([]byte{0xff, 0xda}, 100)...), "The image has too many scans. Save it as PNG."},
		"large":       {pngOf(t, large), "Must be at most 256 KiB."}, "one byte too many": {append(drawing, make([]byte, domain.MaxLogoBytes+1-len(drawing))...), "Must be at most 256 KiB."},
	} {
		logo, err := domain.ParseLogo(c.upload)
		var e *apperr.Error
		if logo.Hash != "" || !errors.As(err, &e) || e.Kind != apperr.Invalid || len(e.Fields) != 1 || e.Fields[0] != (apperr.FieldError{Field: "logo", Message: c.want}) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// FuzzParseLogo checks that no upload causes a panic, and that a stored logo can be read again.
func FuzzParseLogo(f *testing.F) {
	frame := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	f.Add(pngOf(f, frame))
	f.Add(jpegOf(f, frame, 90))
	f.Add(bombOf(f, 2000, 2000))
	f.Fuzz(func(t *testing.T, upload []byte) {
		if logo, err := domain.ParseLogo(upload); err == nil {
			decoded(t, logo)
		}
	})
}
