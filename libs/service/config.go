package service

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"holdfast.dev/libs/secret"
)

// Common are the settings that every process has.
type Common struct {
	HTTPAddr     string        `env:"HTTP_ADDR" envDefault:"127.0.0.1:8080"`         // address that the service listens on
	PublicURL    string        `env:"PUBLIC_URL" envDefault:"http://localhost:8080"` // URL of the gateway as clients reach it, without a path; links in responses start with it
	MetricsAddr  string        `env:"METRICS_ADDR"`                                  // address of /metrics and /debug/pprof; empty: disabled
	LogLevel     string        `env:"LOG_LEVEL" envDefault:"info"`                   // debug, info, warn or error
	OTLPEndpoint string        `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`                   // URL of an OTLP/HTTP collector; empty: no traces
	TraceRatio   float64       `env:"TRACE_SAMPLE_RATIO" envDefault:"0.05"`          // share of the traces that is exported, 0 to 1, decided where a trace begins; a request that fails with a 5xx always exports its span
	HTTP         HTTPLimits    // limits of the HTTP server; no setting
	BatchBytes   int           `env:"BATCH_BYTES" envDefault:"8388608"`       // maximum size of the rows and messages that one step of background work holds; a larger row or message is processed on its own
	SecretReload time.Duration `env:"SECRET_RELOAD_INTERVAL" envDefault:"5s"` // how often the files of secrets are read, from 100ms to 1m
	StopDelay    time.Duration `env:"STOP_DELAY" envDefault:"0s"`             // after a stop signal, how long the process keeps serving, not ready, while load balancers remove it; extended by at most the same time while clients still connect
	StopTimeout  time.Duration `env:"STOP_TIMEOUT" envDefault:"15s"`          // time limit of the whole graceful stop
}

// check rejects a share that is none.
func (c Common) check() error {
	if !(c.TraceRatio >= 0 && c.TraceRatio <= 1) { // not a number is neither
		return fmt.Errorf("TRACE_SAMPLE_RATIO must be from 0 to 1, not %v", c.TraceRatio)
	}
	return nil
}

// HTTPLimits limits the resources that one client can use.
type HTTPLimits struct {
	ReadHeaderTimeout time.Duration // for reading a request's header
	ReadTimeout       time.Duration // for reading a request's header and body
	WriteTimeout      time.Duration // from the end of a request's header to the end of its response
	IdleTimeout       time.Duration // of a connection between requests; longer than clients keep idle connections
	MaxHeaderBytes    int           // of all headers of a request
	MaxConnections    int           // further ones wait
}

var standardLimits = HTTPLimits{
	ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 75 * time.Second,
	MaxHeaderBytes: 32 << 10, MaxConnections: 20_000,
}

// Load fills dst, a pointer to a struct, from the environment by its env tags. KEY=value files, such as .run/env, provide the
// variables that the environment does not set. A secret setting NAME can be given as NAME_FILE, the path of a file. A missing file is not an error. A number, text, bool or duration that dst already
// contains replaces the field's envDefault.
func Load(dst any, files ...string) error {
	vars := env.ToMap(os.Environ())
	for _, name := range files {
		if err := addFile(vars, name); err != nil {
			return err
		}
	}
	v := reflect.Indirect(reflect.ValueOf(dst))
	addValues(vars, v)
	paths, failed := addFiles(vars, v)
	if err := errors.Join(failed, env.ParseWithOptions(dst, env.Options{Environment: vars})); err != nil {
		return fmt.Errorf("settings: %s", strings.Join(reasons(err, v), "; "))
	}
	secrets(v, func(name string, field reflect.Value) {
		if s, ok := field.Addr().Interface().(*secret.Setting); ok && paths[name] != "" {
			s.InFile(name, paths[name])
		}
	})
	return nil
}

// reasons returns one line for each error in err. The line of a missing secret also names the variable with its file.
func reasons(err error, v reflect.Value) (lines []string) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			lines = append(lines, reasons(one, v)...)
		}
		return lines
	case env.VarIsNotSetError:
		text := e.Error()
		secrets(v, func(name string, _ reflect.Value) {
			if name == e.Key {
				text = fmt.Sprintf("required environment variable %q or %q is not set", name, name+fileSuffix)
			}
		})
		return []string{text}
	default:
		return []string{strings.ReplaceAll(err.Error(), "\n", " ")}
	}
}

// addValues adds the values of v's fields for names that vars does not have.
func addValues(vars map[string]string, v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		_, set := vars[name]
		_, inFile := vars[name+fileSuffix]
		switch {
		case name == "":
			addValues(vars, v.Field(i))
		case !set && !inFile && !v.Field(i).IsZero():
			vars[name] = text(v.Field(i))
		}
	}
}

// EnvFile finds the .run/env of a running platform in the working folder or a folder above it, for command-line tools. It returns
// "" if there is none.
func EnvFile() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		file := filepath.Join(dir, ".run", "env")
		if _, err := os.Stat(file); err == nil {
			return file
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func addFile(vars map[string]string, name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		_, set := vars[key]
		_, inFile := vars[key+fileSuffix]
		if ok && !set && !inFile && !strings.HasPrefix(key, "#") {
			vars[key] = value
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	return nil
}

// Describe returns settings for the start line. Fields tagged `secret:"true"` and passwords in URLs are masked. `secret:"url"` marks
// a URL that contains a password.
func Describe(configs ...any) slog.Value {
	var attrs []slog.Attr
	for _, c := range configs {
		if c != nil {
			attrs = describe(attrs, reflect.Indirect(reflect.ValueOf(c)))
		}
	}
	return slog.GroupValue(attrs...)
}

func describe(attrs []slog.Attr, v reflect.Value) []slog.Attr {
	if v.Kind() != reflect.Struct {
		return attrs
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case name != "" && field.IsExported():
			attrs = append(attrs, slog.String(name, masked(field, v.Field(i))))
		case field.IsExported():
			attrs = describe(attrs, reflect.Indirect(v.Field(i)))
		}
	}
	return attrs
}

// text returns the value of a field as in the environment.
func text(v reflect.Value) string {
	if s, ok := v.Interface().(secret.Setting); ok {
		return s.Get()
	}
	return fmt.Sprint(v.Interface())
}

func masked(field reflect.StructField, v reflect.Value) string {
	text := text(v)
	if field.Tag.Get("secret") == "url" && !strings.Contains(text, "://") { // such as PostgreSQL's form "password=…"
		return secret.New(text).String()
	}
	if field.Tag.Get("secret") == "true" {
		return secret.New(text).String()
	}
	return maskedURL(text)
}

func maskedURL(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}
