"""Why a group or a connection has its verdict: findings, evidence, sentences."""
