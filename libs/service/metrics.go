package service

import (
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/command"
	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/tlsx"
)

// buildInfo returns the metric that shows which build runs, with the labels of Prometheus's own programs.
func buildInfo(b command.Build) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdfast_build_info", Help: "Always 1. The labels are the version, the commit and the Go version of the process.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Commit, "goversion": b.Go},
	})
	g.Set(1)
	return g
}

// certificates reports when the certificates in files that settings name expire. It reads the files whenever the metrics are read.
type certificates struct {
	expiration *prometheus.Desc
	files      []certificate
}

type certificate struct {
	setting string
	kind    string // ca or client
	file    func() string
}

// The ends of the names of settings that contain the path of a file with certificates.
const (
	caSuffix     = "_CA_FILE"
	clientSuffix = "_CLIENT_CERT_FILE"
)

// newCertificates returns the metrics of the files that the settings in configs name: as NAME_CA_FILE and NAME_CLIENT_CERT_FILE, and as
// parameters of URLs of PostgreSQL.
func newCertificates(configs ...any) *certificates {
	c := &certificates{expiration: prometheus.NewDesc("tls_certificate_expiration_timestamp_seconds",
		"Time at which the certificate in the setting's file expires; of several, the first; of authorities, the first that has not expired. 0 if the file cannot be read.",
		[]string{"setting", "kind"}, nil)}
	for _, config := range configs {
		if config != nil {
			c.find(reflect.Indirect(reflect.ValueOf(config)))
		}
	}
	return c
}

// find adds the files that the fields of v name.
func (c *certificates) find(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case !field.IsExported():
		case name == "":
			c.find(v.Field(i))
		case field.Type == settingType && field.Tag.Get("secret") == "url":
			c.addURL(name, v.Field(i))
		case strings.HasSuffix(name, clientSuffix):
			c.add(name, "client", v.Field(i).String)
		case strings.HasSuffix(name, caSuffix):
			c.add(name, "ca", v.Field(i).String)
		}
	}
}

func (c *certificates) add(setting, kind string, file func() string) {
	c.files = append(c.files, certificate{setting, kind, file})
}

// addURL adds the files that a URL of PostgreSQL names. The URL can change while the process runs.
func (c *certificates) addURL(setting string, v reflect.Value) {
	address, _ := v.Interface().(secret.Setting)
	for kind, parameter := range map[string]string{"ca": "sslrootcert", "client": "sslcert"} {
		c.add(setting, kind, func() string { return urlFile(address.Get(), parameter) })
	}
}

// urlFile returns the value of a parameter of a URL of PostgreSQL, or of its form "password=…".
func urlFile(text, parameter string) string {
	if u, err := url.Parse(text); err == nil && u.Scheme != "" {
		return u.Query().Get(parameter)
	}
	for field := range strings.FieldsSeq(text) {
		if name, value, _ := strings.Cut(field, "="); name == parameter {
			return strings.Trim(value, "'")
		}
	}
	return ""
}

// Describe implements prometheus.Collector.
func (c *certificates) Describe(ch chan<- *prometheus.Desc) { ch <- c.expiration }

// Collect implements prometheus.Collector.
func (c *certificates) Collect(ch chan<- prometheus.Metric) {
	for _, one := range c.files {
		file := one.file()
		if file == "" || file == "system" { // the system's authorities
			continue
		}
		ch <- prometheus.MustNewConstMetric(c.expiration, prometheus.GaugeValue, one.expiration(file), one.setting, one.kind)
	}
}

// expiration returns the Unix time at which the certificate expires, or 0.
func (c certificate) expiration(file string) float64 {
	end, err := tlsx.Expiry(file)
	if c.kind == "ca" {
		end, err = tlsx.ExpiryOfAuthorities(file, time.Now())
	}
	if err != nil {
		return 0
	}
	return float64(end.Unix())
}
