// Package clustertest stops or kills the processes in the pods of a kind cluster as a failing machine would: by a signal of the
// node's kernel, without a warning to the pod.
package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/services/local/internal/cluster"
)

// Pod is one pod with one container.
type Pod struct {
	Name, Node, IP string
	Ready, Ending  bool
	Restarts       int
	container      string
}

// Pods returns the pods of a service or a datastore, by its name.
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

// Signal sends a signal to the pod's process. It is not an error if the process has ended. After SIGKILL, it waits until the
// kernel ends the process: its connections stay open until its last thread exits, which takes a while on a busy machine.
func Signal(ctx context.Context, pod Pod, sig syscall.Signal) error {
	pid, err := pod.pid(ctx)
	if err != nil || pid == "0" {
		return err
	}
	script := fmt.Sprintf("kill -%d %s || [ ! -d /proc/%s ]", sig, pid, pid)
	if sig == syscall.SIGKILL {
		script += fmt.Sprintf("; for i in $(seq 1000); do [ -d /proc/%s ] || exit 0; sleep 0.01; done; echo process %s lives on; exit 1", pid, pid)
	}
	_, err = node(ctx, pod.Node, "sh", "-c", script)
	return err
}

// Inside runs a script in the pod's network, with the node's programs, and returns its output.
func Inside(ctx context.Context, pod Pod, script string) (string, error) {
	pid, err := pod.pid(ctx)
	if err != nil {
		return "", err
	}
	return node(ctx, pod.Node, "nsenter", "-t", pid, "-n", "bash", "-c", script)
}

// pid returns the id of the pod's process on its node.
func (p Pod) pid(ctx context.Context) (string, error) {
	return node(ctx, p.Node, "crictl", "inspect", "-o", "go-template", "--template", "{{.info.pid}}", p.container)
}

// Kill ends the pods' processes immediately, and then deletes the pods, so that new ones start without a back-off. It does not
// force the deletion. Otherwise the next pod of a StatefulSet could start while the node restarts the process in the old one, and
// both would write to the volume.
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

// KillAll ends the processes of all pods immediately, on each node at the same time. Kubernetes restarts the containers.
func KillAll(ctx context.Context, pods ...Pod) error {
	containers := map[string][]string{} // by node
	for _, pod := range pods {
		containers[pod.Node] = append(containers[pod.Node], pod.container)
	}
	all, ctx := errgroup.WithContext(ctx)
	for name, ids := range containers {
		script := "kill -9 $(for c in " + strings.Join(ids, " ") + "; do crictl inspect -o go-template --template '{{.info.pid}} ' $c; done)"
		all.Go(func() error {
			_, err := node(ctx, name, "sh", "-c", script)
			return err
		})
	}
	return all.Wait()
}

// node runs a command on a node, which is a Docker container.
func node(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", append([]string{"exec", name}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s on %s: %w: %s", strings.Join(args, " "), name, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
