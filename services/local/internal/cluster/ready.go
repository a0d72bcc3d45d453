package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Testable returns an error on one line if the cluster lacks a requirement of `make kind-test`: a second node, to which the pods
// of a drained node move, and the metrics for scaling pods.
func (c *Cluster) Testable(ctx context.Context) error {
	nodes, err := c.usableNodes(ctx)
	if err != nil {
		return err
	}
	var lacks []string
	if len(nodes) < 2 {
		lacks = append(lacks, fmt.Sprintf("two ready nodes that take pods, to drain one of them (there are %d: %s)", len(nodes), strings.Join(nodes, ", ")))
	}
	if !c.hasMetrics(ctx) {
		lacks = append(lacks, "metrics-server, for the autoscaler (`kubectl apply -k k8s/metrics-server`)")
	}
	if len(lacks) > 0 {
		return errors.New("the cluster cannot be tested, it lacks " + strings.Join(lacks, ", and "))
	}
	return nil
}

// usableNodes returns the names of the nodes that are ready and accept pods without a toleration.
func (c *Cluster) usableNodes(ctx context.Context) ([]string, error) {
	out, err := c.Kubectl(ctx, nil, "get", "nodes", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				Unschedulable bool
				Taints        []struct{ Effect string }
			}
			Status struct{ Conditions []condition }
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	var names []string
	for _, n := range list.Items {
		usable := !n.Spec.Unschedulable && holds(n.Status.Conditions, "Ready")
		for _, taint := range n.Spec.Taints {
			usable = usable && taint.Effect == "PreferNoSchedule"
		}
		if usable {
			names = append(names, n.Metadata.Name)
		}
	}
	return names, nil
}

// hasMetrics reports whether the resource metrics of pods are served.
func (c *Cluster) hasMetrics(ctx context.Context) bool {
	out, err := c.Kubectl(ctx, nil, "get", "apiservice", "v1beta1.metrics.k8s.io", "-o", "json")
	if err != nil {
		return false // kubectl also fails if the API does not exist
	}
	var service struct {
		Status struct{ Conditions []condition }
	}
	return json.Unmarshal(out, &service) == nil && holds(service.Status.Conditions, "Available")
}

type condition struct{ Type, Status string }

func holds(list []condition, name string) bool {
	for _, c := range list {
		if c.Type == name {
			return c.Status == "True"
		}
	}
	return false
}
