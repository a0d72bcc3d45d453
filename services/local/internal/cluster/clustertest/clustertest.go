// Package clustertest reaches the processes in the pods of a kind cluster, to end or to stop them as a dying machine
// would: by a signal of the node's kernel, which no pod hears of beforehand.
package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"holdfast.dev/services/local/internal/cluster"
)

// Pod is one pod with one container.
type Pod struct {
	Name, Node, IP string
	Ready, Ending  bool
	Restarts       int
	container      string
}

// Pods are those of a service or a datastore, by its name.
func Pods(ctx context.Context, c *cluster.Cluster, name string) ([]Pod, error) {
	out, err := c.Kubectl(ctx, nil, "get", "pods", "-l", "app.kubernetes.io/name="+name, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Spec     struct{ NodeName string }
			Status   struct {
				PodIP             string
				ContainerStatuses []struct {
					ContainerID  string
					Ready        bool
					RestartCount int
				}
			}
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("pods of %s: %w", name, err)
	}
	var pods []Pod
	for _, item := range list.Items {
		pod := Pod{Name: item.Metadata.Name, Node: item.Spec.NodeName, IP: item.Status.PodIP, Ending: item.Metadata.DeletionTimestamp != ""}
		for _, s := range item.Status.ContainerStatuses {
			pod.Ready, pod.Restarts, pod.container = s.Ready, s.RestartCount, strings.TrimPrefix(s.ContainerID, "containerd://")
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// Signal sends a signal to the pod's process; one that has ended needs none.
func Signal(ctx context.Context, pod Pod, sig syscall.Signal) error {
	pid, err := pod.pid(ctx)
	if err != nil || pid == "0" {
		return err
	}
	_, err = node(ctx, pod.Node, "sh", "-c", fmt.Sprintf("kill -%d %s || [ ! -d /proc/%s ]", sig, pid, pid))
	return err
}

// Inside runs a script in the pod's network, with the node's programs, and returns what it printed.
func Inside(ctx context.Context, pod Pod, script string) (string, error) {
	pid, err := pod.pid(ctx)
	if err != nil {
		return "", err
	}
	return node(ctx, pod.Node, "nsenter", "-t", pid, "-n", "bash", "-c", script)
}

// pid is the process's id on its node.
func (p Pod) pid(ctx context.Context) (string, error) {
	return node(ctx, p.Node, "crictl", "inspect", "-o", "go-template", "--template", "{{.info.pid}}", p.container)
}

// Kill ends the pods' processes at once, and then the pods, so that others come without a back-off. The pods are not
// deleted by force: a StatefulSet's next one would start while the node may be starting the process anew in this one,
// and both would write to the volume.
func Kill(ctx context.Context, c *cluster.Cluster, pods ...Pod) error {
	names := []string{"delete", "--grace-period=1", "--wait=false", "pod"}
	for _, pod := range pods {
		if err := Signal(ctx, pod, syscall.SIGKILL); err != nil {
			return err
		}
		names = append(names, pod.Name)
	}
	_, err := c.Kubectl(ctx, nil, names...)
	return err
}

// node runs a command on a node, which kind runs in a container of docker.
func node(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", append([]string{"exec", name}, args...)...).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		return "", fmt.Errorf("%s on %s: %w: %s", strings.Join(args, " "), name, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
