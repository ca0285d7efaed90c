"""Runs of the corpus that are anonymised together, as one archive each."""

#: One run a group, so that each group's captures are all of a network's kinds: NAT, IPv6, other link types, losses,
#: short snap lengths, missing beginnings, proxies of each sort, held back acknowledgements.
GROUPS = [
    ("reg_dl_cubic_lte", "reg_ul_bloat_256", "reg_dl_nat", "reg_dl_v6", "reg_dl_sll2", "reg_dl_quickack__snap68"),
    ("reg_dl_eth_off", "reg_dl_reno_loss1__drop_srv3", "reg_ul_slowreader_srv__midone", "reg_dl_abort", "reg_bidir"),
    ("spl_ha_dl_small_umts__drop_srv5", "spl_ha_dl_srcip__mid", "spl_ha_ul_slowwire", "spl_ha_dl_v6", "spl_ha_ftp_dl"),
    ("spl_ngx_http_nobuf__sll", "spl_ha_dl_explicit", "prx_ngx_2M_umts", "prx_ngx_par6", "prx_ngx_cache"),
    ("act_reg_ul_T2", "act_ha_ul_T2", "act_ha_dl_T4", "act_ngx_upload_T3", "spl_ha_chat"),
]
