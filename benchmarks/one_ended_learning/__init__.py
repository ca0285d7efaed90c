"""What the detector of one capture learns: densities, links and near legs of networks whose truth is known."""
