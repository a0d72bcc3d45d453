// Package cluster installs Holdfast in a development cluster with kubectl and helm.
package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Release is the name of the chart's release and of its namespace.
const Release = "holdfast"

// Cluster is the platform's namespace in a kind cluster.
type Cluster struct {
	Say func(format string, args ...any)

	context string // from KUBECONFIG; used instead of the current context
	helm    string // command
}

// Open checks that the kind cluster KIND_CLUSTER responds; the default is holdfast.
func Open(ctx context.Context, say func(format string, args ...any)) (*Cluster, error) {
	c := &Cluster{
		Say:     say,
		context: "kind-" + cmp.Or(os.Getenv("KIND_CLUSTER"), "holdfast"), helm: cmp.Or(os.Getenv("HELM"), "helm"),
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		return nil, errors.New("kubectl not found: install it, or add it to PATH")
	}
	if _, err := c.Kubectl(ctx, nil, "version", "--request-timeout=10s"); err != nil {
		return nil, fmt.Errorf("no cluster responds: run `make kind-up`, or set KIND_CLUSTER and KUBECONFIG (%w)", err)
	}
	return c, nil
}

// Kubectl runs kubectl in the namespace and returns its output. An error contains kubectl's error output.
func (c *Cluster) Kubectl(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return run(ctx, stdin, "kubectl", append([]string{"--context", c.context, "-n", Release}, args...)...)
}

func run(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}

// RunHelm runs helm in the namespace and returns its output. An error contains helm's error output.
func (c *Cluster) RunHelm(ctx context.Context, args ...string) ([]byte, error) {
	return run(ctx, nil, c.helm, append([]string{"--kube-context", c.context, "-n", Release}, args...)...)
}

type object map[string]any

// apply creates or changes an object.
func (c *Cluster) apply(ctx context.Context, o object) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, text, "apply", "-f", "-")
	return err
}

// MakeNamespace creates the namespace, in which only restricted pods can run.
func (c *Cluster) MakeNamespace(ctx context.Context) error {
	return c.apply(ctx, object{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": object{"name": Release, "labels": object{
			"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
		}},
	})
}

// PutSecret replaces all values of the Secret with the given ones.
func (c *Cluster) PutSecret(ctx context.Context, name string, values map[string]string) error {
	return c.apply(ctx, object{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": object{"name": name}, "stringData": values,
	})
}

// Secret returns one value of a Secret; nil if there is none.
func (c *Cluster) Secret(ctx context.Context, name, key string) ([]byte, error) {
	out, err := c.Kubectl(ctx, nil, "get", "secret", name, "--ignore-not-found", "-o", "json")
	if err != nil || len(out) == 0 {
		return nil, err
	}
	var secret struct{ Data map[string][]byte }
	if err := json.Unmarshal(out, &secret); err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	return secret.Data[key], nil
}

// datastores are the StatefulSets of k8s/datastores.
var datastores = []string{"postgres", "redis", "kafka"}

// StartDatastores applies a folder of k8s/ and returns when each of datastores is ready.
func (c *Cluster) StartDatastores(ctx context.Context, folder string) error {
	if _, err := c.Kubectl(ctx, nil, "apply", "-k", folder); err != nil {
		return err
	}
	for _, name := range datastores {
		if _, err := c.Kubectl(ctx, nil, "rollout", "status", "statefulset/holdfast-"+name, "--timeout=180s"); err != nil {
			return err
		}
	}
	return nil
}

// Upgrade installs or upgrades the chart and returns when every pod is ready. If it fails, it returns helm's own error.
func (c *Cluster) Upgrade(ctx context.Context, chart string, args ...string) error {
	_, err := c.RunHelm(ctx, append([]string{
		"upgrade", "--install", Release, chart, "--wait", "--wait-for-jobs", "--timeout", "5m",
	}, args...)...)
	return err
}

// Remove uninstalls the release and deletes everything in the namespace except volumes and the objects in retain.
func (c *Cluster) Remove(ctx context.Context, retain ...string) error {
	if _, err := c.RunHelm(ctx, "uninstall", Release, "--ignore-not-found", "--wait"); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, nil, "delete", "statefulsets,services,configmaps,jobs,pods", "--all", "--wait", "--timeout=120s"); err != nil {
		return err
	}
	out, err := c.Kubectl(ctx, nil, "get", "secrets", "-o", "name")
	if err != nil {
		return err
	}
	for secret := range strings.FieldsSeq(string(out)) {
		if slices.Contains(retain, strings.TrimPrefix(secret, "secret/")) {
			continue
		}
		if _, err := c.Kubectl(ctx, nil, "delete", secret); err != nil {
			return err
		}
	}
	return nil
}
