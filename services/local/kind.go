package main

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast.dev/services/local/internal/cluster"
)

func kindCommand() *cobra.Command {
	root := &cobra.Command{Use: "kind", Short: "Run Holdfast in the development cluster of KUBECONFIG"}
	var in cluster.Installation
	install := &cobra.Command{
		Use: "install", Short: "Install or upgrade the datastores, the Secrets and the chart, and seed demo data", Args: cobra.NoArgs,
		RunE: inCluster(func(p *cluster.Platform, ctx context.Context) error { return p.Install(ctx, in) }),
	}
	install.Flags().StringVar(&in.Datastores, "datastores", "k8s/datastores", "folder with the manifests of PostgreSQL, Redis and Kafka")
	install.Flags().StringVar(&in.Chart, "chart", "charts/platform", "folder of the chart, with its values-dev.yaml")
	install.Flags().StringVar(&in.Tag, "tag", "dev", "tag of the images")
	install.Flags().StringVar(&in.Registry, "registry", "", "registry of a release, whose chart has the digests of its images; replaces the tag")
	install.Flags().StringArrayVar(&in.Values, "values", nil, "values files in addition to values-dev.yaml")
	forward := &cobra.Command{
		Use: "forward", Short: "Forward the datastores to this machine until Ctrl-C, and write .run/kind/.run/env", Args: cobra.NoArgs,
		RunE: inCluster((*cluster.Platform).ForwardDatastores),
	}
	uninstall := &cobra.Command{
		Use: "uninstall", Short: "Uninstall everything except the volumes and their keys", Args: cobra.NoArgs,
		RunE: inCluster((*cluster.Platform).Uninstall),
	}
	check := &cobra.Command{
		Use: "check", Short: "Check that the cluster meets the requirements of make kind-test", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(cmd.Context(), func(string, ...any) {})
			if err != nil {
				return err
			}
			return c.Testable(cmd.Context())
		},
	}
	root.AddCommand(check, install, forward, uninstall)
	return root
}

func inCluster(do func(*cluster.Platform, context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		p, err := cluster.OpenPlatform(cmd.Context())
		if err != nil {
			return err
		}
		return do(p, cmd.Context())
	}
}
