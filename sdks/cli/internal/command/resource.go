package command

import (
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/sdks/cli/internal/operations"
)

// resource returns the commands of a resource.
func (a *App) resource(res operations.Resource) *cobra.Command {
	cmd := &cobra.Command{Use: res.Name, GroupID: groupResources, Short: summary(res), Long: res.Description}
	for _, op := range res.Operations {
		cmd.AddCommand(a.operation(res, op))
	}
	return cmd
}

// summary returns the names of a resource's operations, for the list of commands.
func summary(res operations.Resource) string {
	names := make([]string, len(res.Operations))
	for i, op := range res.Operations {
		names[i] = op.Name
	}
	return strings.Join(names, ", ")
}

// operation returns the command of an operation.
func (a *App) operation(res operations.Resource, op operations.Operation) *cobra.Command {
	c := &call{app: a, op: op, name: res.Name + " " + op.Name}
	cmd := &cobra.Command{
		Use: op.Name, Short: op.Summary + ".", Long: c.help(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	for _, p := range op.PathParams {
		cmd.Use += " " + strings.ToUpper(strings.ReplaceAll(p.Name, "_", "-"))
	}
	cmd.Flags().SortFlags = false
	for _, p := range op.Fields {
		c.fields = append(c.fields, addInput(cmd, p))
	}
	for _, p := range op.QueryParams {
		c.query = append(c.query, addInput(cmd, p))
	}
	for _, p := range op.HeaderParams {
		p.Name = strings.ToLower(p.Name)
		c.headers = append(c.headers, addInput(cmd, p))
	}
	c.flags(cmd)
	return cmd
}

// help returns the long help text: the description, and the scopes.
func (c *call) help() string {
	text := strings.ReplaceAll(c.op.Description, "`", "")
	if len(c.op.Scopes) > 0 {
		text += "\n\nRequired scope: " + strings.Join(c.op.Scopes, ", ") + "."
	}
	return text
}

// flags adds the flags that follow from the kind of the operation.
func (c *call) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	if c.op.Body {
		f.StringVarP(&c.data, "data", "d", "", "body: a JSON `object`, @FILE, or - for standard input; other flags override its fields")
		f.StringSliceVar(&c.clear, "clear", nil, "`fields` to set to null, separated by commas")
	}
	if c.op.Method == "POST" || c.op.Method == "PATCH" {
		f.StringVar(&c.key, "idempotency-key", "", "`key` that makes repetitions safe (default a new one)")
	}
	if c.op.Conditional {
		f.Int64Var(&c.version, "if-match", 0, "change the object only if it has this `version`")
	}
	if c.op.Write() {
		f.BoolVarP(&c.yes, "yes", "y", false, "do not ask for confirmation in live mode")
	}
	if c.op.Kind == operations.Page {
		f.BoolVar(&c.all, "all", false, "get all pages")
	}
	if c.op.List && c.op.Kind != operations.Stream {
		f.StringSliceVar(&c.columns, "columns", nil, "`columns` of the table, separated by commas: properties such as id or customer.name")
		_ = cmd.RegisterFlagCompletionFunc("columns", cobra.FixedCompletions(known(c.op), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	}
	if c.op.Kind == operations.Raw {
		f.StringVarP(&c.file, "file", "f", "", "`file` to write to; - is standard output (default the name that the platform suggests)")
	} else {
		f.StringVarP(&c.format, "output", "o", "", "format: "+strings.Join(c.formats(), ", ")+" (default table on a terminal, otherwise json)")
		f.StringVar(&c.filter, "jq", "", "jq `filter` for the JSON response")
		_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(c.formats(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	}
	f.BoolVar(&c.dry, "dry-run", false, "print the request as a curl command and send nothing")
}
