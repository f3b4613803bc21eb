package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/tool"
)

// builtinBundle is how the default bundle is named on the command line.
const builtinBundle = "builtin"

// policyFlags are what every policy command takes.
type policyFlags struct {
	grants []string
	beside []string
}

func newPolicyCommand() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{
		Use:   "policy",
		Short: "Begin, check, test, build, compare and explain policy bundles",
		Long: "Work on policy bundles: what a gateway does after which failure, and for whom.\n\n" +
			"A bundle is a folder or a .tar.gz in OPA's bundle format, or `builtin`, the default one. What the roots\n" +
			"of its manifest leave open comes from the default bundle, as in the gateway. Bundles that lie side by\n" +
			"side there are named here with --beside.",
		Example: "  interlock policy new ours\n" +
			"  interlock policy check ours && interlock policy test ours\n" +
			"  interlock policy diff builtin ours\n" +
			"  interlock policy build ours -o ours.tar.gz --revision r1 --signing-key key.pem",
		Args: cobra.NoArgs,
	}
	c.PersistentFlags().StringArrayVar(&f.grants, "grant", nil, "a builtin function that bundles may call though it is refused by default, such as time.now_ns")
	c.PersistentFlags().StringArrayVar(&f.beside, "beside", nil, "another bundle that lies beside it in the gateway: a folder or .tar.gz with roots of its own")
	c.AddCommand(
		newPolicyNew(), newPolicyCheck(&f), newPolicyTest(&f), newPolicyBuild(&f), newPolicyMatrix(&f),
		newPolicyDiff(&f), newPolicyEval(&f), newPolicyReplay(&f),
	)
	c.AddCommand(newCandidateCommands()...)
	return c
}

// sources are a bundle and those beside it.
func (f *policyFlags) sources(bundle string) []policy.Source {
	all := []policy.Source{bundleSource(bundle)}
	for _, b := range f.beside {
		all = append(all, bundleSource(b))
	}
	return all
}

func bundleSource(bundle string) policy.Source {
	if bundle == builtinBundle {
		return policy.Builtin()
	}
	return policy.Path(bundle, bundle)
}

// toolTimeout bounds one decision of a tool: more than a gateway gives, since the machine may
// be busy and nobody waits.
const toolTimeout = 10 * time.Second

// load makes a revision for a tool: with no decisions kept, since most are asked once.
func (f *policyFlags) load(ctx context.Context, bundle string) (*policy.Revision, error) {
	r, err := policy.LoadAll(ctx, f.sources(bundle), policy.Options{Timeout: toolTimeout, CacheSize: -1, Grants: f.grants})
	var faults policy.Errors
	if errors.As(err, &faults) {
		return nil, fmt.Errorf("%s is refused:\n%w", bundle, err)
	}
	return r, err
}

// argOr is the first argument, or what stands for none.
func argOr(args []string, none string) string {
	if len(args) == 0 {
		return none
	}
	return args[0]
}

func printFaults(w io.Writer, faults policy.Errors) {
	for _, f := range faults {
		fmt.Fprintln(w, f)
	}
}

func newPolicyNew() *cobra.Command {
	return &cobra.Command{
		Use:   "new DIR",
		Short: "Make a folder with a bundle that works, to start from",
		Long: "Make a folder with a bundle that works: a manifest with the roots that it owns, one exception to the\n" +
			"failure matrix with comments on all others, and a test of it. A folder that is not empty is refused.",
		Example: "  interlock policy new ours",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return &exitError{status: 2, message: "a folder's name is required"}
			}
			if err := tool.Scaffold(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Made %s. It works as it is:\n\n  interlock policy check %[1]s\n  interlock policy test %[1]s\n  interlock policy diff builtin %[1]s\n\nREADME.md there says what is what.\n", printable(args[0]))
			return nil
		},
	}
}
