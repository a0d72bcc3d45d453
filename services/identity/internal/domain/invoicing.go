package domain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"regexp"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/money"
)

// Invoicing contains the tenant's data on invoices and quotes. Empty texts are not shown.
type Invoicing struct {
	InvoicePrefix string // prefix of the numbers
	InvoiceYear   bool   // whether the year follows the prefix
	LegalName     string
	Address       string // can have several lines
	TaxID         string
	TaxBehavior   TaxBehavior
	DefaultTaxes  []money.Tax // of lines of documents whose service has none; never nil
	Locale        *string     // BCP 47, for customers without one; nil: the language of the country
	BankAccount
	LogoHash string // of the stored logo; empty: none
	NewLogo  []byte `db:"-"` // the content for LogoHash, if WithLogo has changed it
}

// TaxBehavior says whether the prices of new documents include taxes.
type TaxBehavior string

// The behaviors of prices.
const (
	TaxExclusive TaxBehavior = "exclusive"
	TaxInclusive TaxBehavior = "inclusive"
)

// DefaultInvoicing returns the settings of a new tenant.
func DefaultInvoicing() Invoicing {
	return Invoicing{InvoicePrefix: "INV-", TaxBehavior: TaxExclusive, DefaultTaxes: []money.Tax{}}
}

// BankAccount is the account that documents name for bank transfers. Empty texts are not shown.
type BankAccount struct {
	BankAccountHolder string
	BankAccountNumber string // an IBAN without spaces, or another account number
	BankCode          string // a BIC without spaces, or the number that identifies the bank in its country
	BankName          string
}

// The limits of a bank account, in characters.
const (
	MaxBankName      = 100 // also of the holder
	MaxAccountNumber = 34
)

var (
	iban        = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$`)
	ibanStart   = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}`)
	accountForm = regexp.MustCompile(`^[A-Z0-9/-]*$`)
	bic         = regexp.MustCompile(`^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$`)
	bankNumber  = regexp.MustCompile(`^[0-9][0-9-]{2,11}$`)
)

// applyBank sets the given fields. Numbers are stored without spaces and in upper case.
func (p TenantPatch) applyBank(b *BankAccount) {
	p.BankAccountHolder.Set(&b.BankAccountHolder)
	p.BankAccountNumber.Set(&b.BankAccountNumber)
	p.BankCode.Set(&b.BankCode)
	p.BankName.Set(&b.BankName)
	b.BankAccountNumber, b.BankCode = compact(b.BankAccountNumber), compact(b.BankCode)
}

// compact removes the spaces of a number.
func compact(s string) string { return strings.ToUpper(strings.Join(strings.Fields(s), "")) }

// checkBank reports each invalid field.
func checkBank(b BankAccount, want func(ok bool, field, message string)) {
	want(isLine(b.BankAccountHolder, 0, MaxBankName), "bank_account_holder", "Must be one visible line of at most 100 characters.")
	want(isAccount(b.BankAccountNumber), "bank_account_number",
		"Must be an IBAN with a correct check number, or at most 34 letters, digits, hyphens and slashes that do not begin like an IBAN.")
	want(b.BankCode == "" || bic.MatchString(b.BankCode) || bankNumber.MatchString(b.BankCode), "bank_code",
		"Must be a BIC of 8 or 11 characters, or a number of 3 to 12 digits and hyphens.")
	want(isLine(b.BankName, 0, MaxBankName), "bank_name", "Must be one visible line of at most 100 characters.")
}

// isAccount reports whether a text is a correct IBAN (ISO 13616), another account number, or empty.
func isAccount(s string) bool {
	if len(s) > MaxAccountNumber || !accountForm.MatchString(s) {
		return false
	}
	if !ibanStart.MatchString(s) {
		return true
	}
	return iban.MatchString(s) && remainder(s[4:]+s[:4]) == 1
}

// remainder returns the number of an IBAN modulo 97 (ISO 7064): each letter stands for two digits, from A = 10.
func remainder(s string) int {
	rest := 0
	for _, r := range s {
		if r >= 'A' {
			rest = (rest*100 + int(r-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(r-'0')) % 97
		}
	}
	return rest
}

// The limits of an uploaded logo.
const (
	MaxLogoBytes = 256 << 10
	MaxLogoSide  = 2_000 // pixels
	maxLogoScans = 100   // of a JPEG image: each costs a pass over all pixels, and a few bytes
)

// logoQuality is the quality of JPEG logos. At a higher one, the result can be larger than the upload.
const logoQuality = 90

// startOfScan is the marker of a scan in a JPEG image (ITU-T T.81, B.1.1.3).
var startOfScan = []byte{0xff, 0xda}

// ErrLogoNotFound reports that a tenant has no logo.
var ErrLogoNotFound = apperr.New(apperr.NotFound, "logo_not_found", "The tenant has no logo.")

// Logo is the image on a tenant's documents. The zero Logo is none.
type Logo struct {
	Hash    string `db:"logo_hash"` // SHA-256 of the content in hexadecimal
	Content []byte `db:"logo"`      // PNG or JPEG with 8 bits per channel, without transparency, interlacing or metadata
}

// MediaType returns the media type of the content.
func (l Logo) MediaType() string {
	if isPNG(l.Content) {
		return "image/png"
	}
	return "image/jpeg"
}

func isPNG(content []byte) bool { return bytes.HasPrefix(content, []byte("\x89PNG")) }

// ParseLogo reads an uploaded PNG or JPEG image. It encodes the image again, so that printing it cannot fail and nothing else of the
// upload is published: neither metadata, such as a place, nor what follows the image. White replaces transparency.
func ParseLogo(upload []byte) (Logo, error) {
	if len(upload) > MaxLogoBytes {
		return Logo{}, apperr.Field("logo", "Must be at most 256 KiB.")
	}
	config, decode := jpeg.DecodeConfig, jpeg.Decode // not those of package image, which also read the formats that a library registers
	if isPNG(upload) {
		config, decode = png.DecodeConfig, png.Decode
	}
	c, err := config(bytes.NewReader(upload))
	switch {
	case err != nil:
		return Logo{}, apperr.Field("logo", "Must be a PNG or JPEG image.").WithCause(err)
	case c.Width > MaxLogoSide || c.Height > MaxLogoSide:
		return Logo{}, apperr.Field("logo", "Must be at most 2,000 pixels wide and 2,000 pixels high.")
	case !isPNG(upload) && bytes.Count(upload, startOfScan) > maxLogoScans:
		return Logo{}, apperr.Field("logo", "The image has too many scans. Save it as PNG.")
	}
	img, err := decode(bytes.NewReader(upload))
	if err != nil {
		return Logo{}, apperr.Field("logo", "The image is damaged.").WithCause(err)
	}
	var out bytes.Buffer
	if isPNG(upload) {
		err = png.Encode(&out, opaque(img))
	} else {
		err = jpeg.Encode(&out, img, &jpeg.Options{Quality: logoQuality})
	}
	if err != nil {
		return Logo{}, err
	}
	sum := sha256.Sum256(out.Bytes())
	return Logo{Hash: hex.EncodeToString(sum[:]), Content: out.Bytes()}, nil
}

// opaque returns an image on a white ground, with 8 bits per channel. It keeps a palette and shades of gray, which need less space.
func opaque(img image.Image) image.Image {
	switch img := img.(type) {
	case *image.Gray:
		return img
	case *image.Paletted:
		for i, c := range img.Palette {
			img.Palette[i] = onWhite(c)
		}
		return img
	}
	out := image.NewRGBA(img.Bounds())
	draw.Draw(out, out.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Over)
	return out
}

// onWhite returns the color of a pixel on a white ground.
func onWhite(c color.Color) color.Color {
	one := image.NewRGBA(image.Rect(0, 0, 1, 1))
	one.Set(0, 0, color.White)
	draw.Draw(one, one.Bounds(), image.NewUniform(c), image.Point{}, draw.Over)
	return one.RGBAAt(0, 0)
}
