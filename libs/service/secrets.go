package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/secret"
)

// fileSuffix is the end of the name of a variable that contains the path of a secret's file.
const fileSuffix = "_FILE"

// The bounds of SECRET_RELOAD_INTERVAL.
const (
	minReload = 100 * time.Millisecond
	maxReload = time.Minute
)

var errReloadInterval = fmt.Errorf("SECRET_RELOAD_INTERVAL must be from %v to %v", minReload, maxReload)

var settingType = reflect.TypeFor[secret.Setting]()

// secrets calls each for the fields of v that can be given as a file: those of the type secret.Setting, and those with a tag secret.
func secrets(v reflect.Value, each func(name string, field reflect.Value)) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case name == "":
			secrets(v.Field(i), each)
		case field.Type == settingType || field.Tag.Get("secret") != "":
			each(name, v.Field(i))
		}
	}
}

// addFiles adds the contents of files to vars: NAME_FILE is the path of the file with the value of the secret setting NAME. It
// returns the paths by the names of the settings.
func addFiles(vars map[string]string, v reflect.Value) (map[string]string, error) {
	files := map[string]string{}
	var failures []error
	secrets(v, func(name string, _ reflect.Value) {
		path := vars[name+fileSuffix]
		switch {
		case path == "" || files[name] != "":
			return
		case vars[name] != "":
			failures = append(failures, fmt.Errorf("%[1]s and %[1]s%[2]s are both set: set only one of them", name, fileSuffix))
			return
		}
		text, err := secret.Read(path)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s%s: %w", name, fileSuffix, err))
			return
		}
		vars[name], files[name] = text, path
	})
	return files, errors.Join(failures...)
}

// reloader reads the files of a process's secret settings again.
type reloader struct {
	settings []secret.Setting
	log      *slog.Logger
	failed   map[string]string // the last error, by setting: it is logged once
	reloads  *prometheus.CounterVec
	invalid  *prometheus.GaugeVec
}

// watchSecrets registers the worker that reads the files of the secret settings in configs.
func (rt *Runtime) watchSecrets(configs ...any) error {
	if every := rt.Common.SecretReload; every < minReload || every > maxReload {
		return errReloadInterval
	}
	r := &reloader{log: rt.Log, failed: map[string]string{}}
	for _, c := range configs {
		if c == nil {
			continue
		}
		secrets(reflect.Indirect(reflect.ValueOf(c)), func(_ string, field reflect.Value) {
			if s, ok := field.Interface().(secret.Setting); ok && s.Name() != "" {
				r.settings = append(r.settings, s)
			}
		})
	}
	if len(r.settings) == 0 {
		return nil
	}
	r.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "secret_reloads_total", Help: "Changes of a secret's file that the process has switched to.",
	}, []string{"setting"})
	r.invalid = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "secret_file_invalid", Help: "1 while a secret's file cannot be used and the process keeps the previous value.",
	}, []string{"setting"})
	rt.Metrics.MustRegister(r.reloads, r.invalid)
	for _, s := range r.settings {
		r.reloads.WithLabelValues(s.Name())
		r.invalid.WithLabelValues(s.Name()).Set(0)
	}
	rt.Every("secrets", rt.Common.SecretReload, func(context.Context) error { r.run(); return nil })
	return nil
}

func (r *reloader) run() {
	for _, s := range r.settings {
		name := s.Name()
		switched, err := s.Reload()
		if err == nil {
			r.invalid.WithLabelValues(name).Set(0)
			if delete(r.failed, name); switched {
				r.reloads.WithLabelValues(name).Inc()
				r.log.Info("secret reloaded from its file", slog.String("setting", name))
			}
			continue
		}
		r.invalid.WithLabelValues(name).Set(1)
		if r.failed[name] != err.Error() {
			r.failed[name] = err.Error()
			r.log.Error("secret not reloaded from its file; keeping the previous value", slog.String("setting", name), slog.Any("error", err))
		}
	}
}
