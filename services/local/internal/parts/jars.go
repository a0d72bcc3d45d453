package parts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

//go:embed pom.xml
var pom []byte

// kafkaFolder contains the version, so that each version has its own folder.
const kafkaFolder = "kafka-4.3.0"

// Java finds a java command of version 17 or later.
func Java(ctx context.Context) (string, error) {
	candidates := []string{"java"}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = []string{filepath.Join(home, "bin", "java"), "java"}
	}
	for _, name := range candidates {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput() //nolint:gosec // java from the path
		if err == nil && javaMajor(string(out)) >= 17 {
			return path, nil
		}
	}
	return "", errors.New("no JDK 17 or later")
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

func javaMajor(text string) int {
	found := javaVersion.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	major, _ := strconv.Atoi(found[1])
	return major
}

// CacheDir returns the folder of Kafka's jars for all checkouts. As root, it is not in root's home, because the servers' user must
// be able to read it.
func CacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return filepath.Join(RootData, "cache"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".cache", "holdfast"), nil
}

// RootData is the folder for the data of all stacks that root runs.
const RootData = "/var/lib/holdfast"

// Jars returns the folder of Kafka's jars. It downloads them with Maven if they are missing. The folder is always complete.
func Jars(ctx context.Context, say func(string, ...any)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, kafkaFolder)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("no Maven")
	}
	say("downloading Apache Kafka with Maven (44 MB, once)")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, "maven-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	return dir, fetchJars(ctx, mvn, work, dir)
}

func fetchJars(ctx context.Context, mvn, work, dir string) error {
	pomFile, jars := filepath.Join(work, "pom.xml"), filepath.Join(work, "jars")
	if err := os.WriteFile(pomFile, pom, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-f", pomFile,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+jars)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn: %w: %s", err, lastLine(string(out)))
	}
	if err := os.Chmod(jars, 0o755); err != nil {
		return err
	}
	err := os.Rename(jars, dir)
	if _, there := os.Stat(dir); there == nil {
		return nil // another checkout created it in the meantime
	}
	return err
}

// SelectKafka replaces auto with the broker that this machine can run and finds its dependencies. It returns the reason if the
// broker is not Apache Kafka.
func SelectKafka(ctx context.Context, requested string, say func(string, ...any)) (Kafka, string, error) {
	if requested == Embedded {
		return Kafka{Kind: Embedded}, "asked for", nil
	}
	java, err := Java(ctx)
	jars := ""
	if err == nil {
		jars, err = Jars(ctx, say)
	}
	switch {
	case err == nil:
		return Kafka{Kind: Apache, Java: java, Jars: jars}, "", nil
	case requested == Apache:
		return Kafka{}, "", fmt.Errorf("Apache Kafka is required, but this machine has %w", err) //nolint:staticcheck // a name
	default:
		return Kafka{Kind: Embedded}, err.Error(), nil
	}
}
