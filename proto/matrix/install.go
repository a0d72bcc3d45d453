package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// complete is the file that marks a finished installation.
const complete = ".complete"

// cacheFolder returns the folder of all installed tools.
func cacheFolder() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cache: %w", err)
	}
	return filepath.Join(home, ".cache", "holdfast", "matrix"), nil
}

// cached returns the folder in the cache for the tools that a file of this folder pins.
func (m *matrix) cached(kind, pins string) string {
	text, err := os.ReadFile(filepath.Join(m.source, pins))
	if err != nil {
		panic(err) // the file is part of the checkout
	}
	sum := sha256.Sum256(text)
	return filepath.Join(m.cache, kind+"-"+hex.EncodeToString(sum[:4]))
}

func (m *matrix) npm() string { return m.cached("node", "package.json") }

func (m *matrix) venv() string { return m.cached("python", "requirements.txt") }

// once runs an installation into a folder unless it was completed before.
func once(folder string, install func() error) error {
	if _, err := os.Stat(filepath.Join(folder, complete)); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	if err := install(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, complete), nil, 0o644)
}

// installNode installs the tools of package.json.
func installNode(ctx context.Context, m *matrix) error {
	folder := m.npm()
	return once(folder, func() error {
		pins, err := os.ReadFile(filepath.Join(m.source, "package.json"))
		if err != nil {
			return fmt.Errorf("package.json: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, "package.json"), pins, 0o644); err != nil { //nolint:gosec // anybody may read it
			return fmt.Errorf("package.json: %w", err)
		}
		return command(ctx, folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts")
	})
}

// installPython installs the tools of requirements.txt.
func installPython(ctx context.Context, m *matrix) error {
	return installVenv(ctx, m.venv(), filepath.Join(m.source, "requirements.txt"))
}

// installVenv installs the packages of a file of requirements into a folder.
func installVenv(ctx context.Context, folder, requirements string) error {
	return once(folder, func() error {
		if err := command(ctx, folder, "python3", "-m", "venv", folder); err != nil {
			return err
		}
		return command(ctx, folder, filepath.Join(folder, "bin", "pip"), "install", "--quiet", "-r", requirements)
	})
}

// printVenv installs the packages of a file of requirements into the cache, and prints the folder of their programs.
func printVenv(ctx context.Context, requirements string) error {
	requirements, err := filepath.Abs(requirements)
	if err != nil {
		return fmt.Errorf("requirements: %w", err)
	}
	cache, err := cacheFolder()
	if err != nil {
		return err
	}
	m := &matrix{source: filepath.Dir(requirements), cache: cache}
	folder := m.cached("python", filepath.Base(requirements))
	if err := installVenv(ctx, folder, requirements); err != nil {
		return err
	}
	fmt.Println(filepath.Join(folder, "bin"))
	return nil
}

// installGo returns an installation of a Go program, and the path of the program in the cache.
func installGo(path, version string) (func(context.Context, *matrix) error, func(*matrix) string) {
	folder := func(m *matrix) string { return filepath.Join(m.cache, filepath.Base(path)+"-"+version) }
	return func(ctx context.Context, m *matrix) error {
			return once(folder(m), func() error {
				return commandWith(ctx, []string{"GOBIN=" + folder(m)}, folder(m), "go", "install", "-p", "2", path+"@v"+version)
			})
		}, func(m *matrix) string {
			return filepath.Join(folder(m), filepath.Base(path))
		}
}

// generatorVersion is that of openapi-generator.
const generatorVersion = "7.25.0"

func (m *matrix) jar() string {
	return filepath.Join(m.cache, "openapi-generator-"+generatorVersion, "openapi-generator-cli-"+generatorVersion+".jar")
}

// installJar downloads openapi-generator from Maven Central.
func installJar(ctx context.Context, m *matrix) error {
	folder := filepath.Dir(m.jar())
	return once(folder, func() error {
		return command(ctx, folder, "mvn", "-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy",
			"-Dartifact=org.openapitools:openapi-generator-cli:"+generatorVersion, "-DoutputDirectory="+folder)
	})
}
