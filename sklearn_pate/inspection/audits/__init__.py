"""Statistical audits of mechanisms and fits."""
